import * as z from 'zod'
import { defineTool, type Tool, type ToolContext, type ToolDefinition } from '../../../src/index.ts'
import type { ReplyToolCall } from '../../../src/testing/index.ts'

const parameters = z.object({ note: z.string().optional() })
type Options = Partial<Omit<ToolDefinition<typeof parameters>, 'name' | 'description' | 'parameters' | 'execute'>>

/** A tool that writes its name down each time it runs; `work` is what it does then, else it returns `NAME done`. */
export function recording(
  name: string,
  runs: string[],
  options: Options = {},
  work: (context: ToolContext, note: string | undefined) => unknown = () => `${name} done`,
): Tool {
  return defineTool({
    name,
    description: `Does ${name}.`,
    parameters,
    execute: ({ note }, context) => {
      runs.push(name)
      return work(context, note)
    },
    ...options,
  })
}

/** A call as a model makes it. */
export function call(name: string, id?: string, args: object | string = {}): ReplyToolCall {
  return { name, arguments: args, ...(id === undefined ? {} : { id }) }
}

let made = 0

/** An id for a call that no other test uses: tests of a suite share a table in which ids are unique. */
export function freshId(): string {
  return `call_${++made}`
}

/** A name for an agent that no other test uses: workers must not find chats that earlier tests left behind. */
export function freshName(): string {
  return `agent-${++made}`
}
