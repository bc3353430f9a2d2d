import * as z from 'zod'
import { defineAgent, defineTool, type ToolContext } from '../../../src/index.ts'

// Chats that kill their processes, and their neighbours. What their tools do the desk of the test says.

async function visit(errand: string, context: ToolContext): Promise<unknown> {
  const response = await fetch(process.env.THREADMILL_TEST_DESK ?? '', {
    method: 'POST',
    body: JSON.stringify({
      errand,
      pid: process.pid,
      chatId: context.chat.id,
      key: context.idempotencyKey,
      args: {},
    }),
    signal: context.signal,
  })
  return ((await response.json()) as { result: unknown }).result
}

const work = defineTool({
  name: 'work',
  description: 'Works.',
  parameters: z.object({}),
  execute: (_args, context) => visit('work', context),
})

/** Ends its process in whatever way the desk says; blocks it for ever; or survives. */
const burst = defineTool({
  name: 'burst',
  description: 'Bursts.',
  parameters: z.object({}),
  async execute(_args, context) {
    const how = await visit('burst', context)
    if (how === 'is killed') process.kill(process.pid, 'SIGKILL')
    if (how === 'exits') process.exit(0)
    if (how === 'throws') {
      setTimeout(() => {
        throw new Error('nobody catches this')
      })
      await new Promise(() => {})
    }
    if (how === 'blocks') for (;;);
    return how
  },
})

export const agents = [
  defineAgent({ name: 'neighbour', tools: [work] }),
  defineAgent({ name: 'poison', tools: [burst] }),
]

// biome-ignore lint/style/noDefaultExport: what `threadmill worker --app` and `isolate` take.
export default { agents }
