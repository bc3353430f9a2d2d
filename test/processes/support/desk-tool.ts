import * as z from 'zod'
import { defineTool, type ToolContext } from '../../../src/index.ts'

/** Tells the test's desk of the call, and gives back what the desk says. */
export async function visitDesk(errand: string, args: object, context: ToolContext): Promise<unknown> {
  const response = await fetch(process.env.THREADMILL_TEST_DESK ?? '', {
    method: 'POST',
    body: JSON.stringify({
      errand,
      pid: process.pid,
      chatId: context.chat.id,
      key: context.idempotencyKey,
      args,
    }),
    signal: context.signal,
  })
  const { result } = (await response.json()) as { result: unknown }
  return result
}

/** A tool that only visits the desk. */
export function deskTool(name: string, options: { readonly requiresApproval?: boolean } = {}) {
  return defineTool({
    name,
    description: `Does what ${name} says.`,
    parameters: z.object({}),
    execute: (args, context) => visitDesk(name, args, context),
    ...options,
  })
}
