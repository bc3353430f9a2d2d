import { expectTypeOf } from 'expect-type'
import {
  type AttachmentSource,
  defineAgent,
  defineTool,
  type JsonObject,
  type Owner,
  type Tool,
  type ToolContext,
} from 'threadmill'
import * as z from 'zod'
import * as mini from 'zod/mini'

// Compiled by `npm run check:types`, never run: what is expected here holds if it compiles.

const about = { name: 'refund', description: 'Refunds an order.' } as const

/** A schema of some other library that follows the standard. */
interface OtherSchema<Output> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: 'other'
    readonly validate: (value: unknown) => { readonly value: Output }
    readonly types?: { readonly input: unknown; readonly output: Output }
  }
}
declare const other: OtherSchema<{ order: number }>

// Arguments are what the schema makes of the model's: defaults and transforms applied.
const tool = defineTool({
  ...about,
  parameters: z.object({
    order: z.string(),
    amount: z.number().default(1),
    note: z.string().optional(),
    days: z.string().transform(Number),
  }),
  execute(args, context) {
    expectTypeOf(args).toEqualTypeOf<{ order: string; amount: number; note?: string | undefined; days: number }>()
    expectTypeOf(context).toEqualTypeOf<ToolContext>()
    expectTypeOf(context.idempotencyKey).toEqualTypeOf<string>()
    expectTypeOf(context.toolCall.arguments).toEqualTypeOf<JsonObject>()
    expectTypeOf(context.attach).returns.toEqualTypeOf<Promise<void>>()
    expectTypeOf(context.attach).parameters.toEqualTypeOf<[AttachmentSource | readonly AttachmentSource[]]>()
  },
})
expectTypeOf(tool).toEqualTypeOf<Tool>()

defineTool({
  ...about,
  parameters: mini.object({ order: mini.string() }),
  execute: async ({ order }) => expectTypeOf(order).toEqualTypeOf<string>(),
})

defineTool({
  ...about,
  parameters: other,
  execute: (args) => expectTypeOf(args).toEqualTypeOf<{ order: number }>(),
})

// Plain JSON Schema tells the compiler nothing, whether it is written in place or comes from elsewhere.
defineTool({
  ...about,
  parameters: { type: 'object', properties: { order: { type: 'string' } } },
  execute: (args) => expectTypeOf(args).toEqualTypeOf<JsonObject>(),
})
declare const schema: Record<string, unknown>
defineTool({ ...about, parameters: schema, execute: (args) => expectTypeOf(args).toEqualTypeOf<JsonObject>() })

const parameters = z.object({ order: z.string() })
const execute = () => 'done'

// A resolver sees the stored call and may leave the decision to a person.
defineTool({
  ...about,
  parameters,
  execute,
  requiresApproval: async (call, chat) => {
    expectTypeOf(call.arguments).toEqualTypeOf<JsonObject>()
    expectTypeOf(chat.owner).toEqualTypeOf<Owner | null>()
    return null
  },
  onInterrupted: async (context) => {
    expectTypeOf(context.arguments).toEqualTypeOf<JsonObject>()
    // Only what runs the tool can attach.
    expectTypeOf(context).not.toHaveProperty('attach')
    return { action: 'result', result: 'done' }
  },
})

// @ts-expect-error: the description is missing
defineTool({ name: 'refund', parameters, execute })
// @ts-expect-error: parameters are a schema
defineTool({ ...about, parameters: 'order', execute })
// @ts-expect-error: there is no such option
defineTool({ ...about, parameters, execute, timeout: 1 })
// @ts-expect-error: a number of ms
defineTool({ ...about, parameters, execute, timeoutMs: '10 s' })
// @ts-expect-error: retry, fail, ask or a function
defineTool({ ...about, parameters, execute, onInterrupted: 'again' })
// @ts-expect-error: nothing can be reconciled so
defineTool({ ...about, parameters, execute, onInterrupted: () => ({ action: 'again' }) })
// @ts-expect-error: the schema has no such argument
defineTool({ ...about, parameters, execute: ({ amount }) => amount })

defineAgent({ name: 'support', tools: [tool], concurrency: true, temperature: 0.2 })
// @ts-expect-error: a tool is made by defineTool
defineAgent({ name: 'support', tools: [{ ...about, parameters, execute }] })
// @ts-expect-error: there is no such option
defineAgent({ name: 'support', maxTokens: 10 })
// @ts-expect-error: inline or queue
defineAgent({ name: 'support', toolExecution: 'thread' })
