import { z } from 'zod'
import type { Failure, JsonObject, ToolOutcome } from '../../models/rows.ts'
import type { InputField } from '../../models/waiting.ts'
import type { EventAttachment, EventToolCall, LiveEvent } from './event.ts'

// Keys that are not known here are left out, not refused: a newer process may write more than this one reads.

const text = z.string()
const textOrNull = z.string().nullable()
const numberOrNull = z.number().nullable()

// What it holds came out of JSON already.
const jsonObject = z.custom<JsonObject>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  'must be a JSON object',
)

const toolCall = z.object({ toolCallId: text, name: text, arguments: jsonObject }) satisfies z.ZodType<EventToolCall>

const failure = z.object({ code: text, message: text, turn: z.number(), at: text }) satisfies z.ZodType<Failure>

const attachment = z.object({
  id: text,
  filename: text,
  contentType: text,
  byteSize: z.number(),
}) satisfies z.ZodType<EventAttachment>

const outcome = z.enum(['succeeded', 'failed', 'denied', 'interrupted']) satisfies z.ZodType<ToolOutcome>

const union = z.discriminatedUnion('type', [
  z.object({ type: z.literal('run.started'), turn: z.number() }),
  z.object({ type: z.literal('message.started'), messageId: text, model: text }),
  z.object({ type: z.literal('text.delta'), messageId: text, text }),
  z.object({ type: z.literal('thinking.delta'), messageId: text, text }),
  z.object({ type: z.literal('attempt.restarted'), messageId: text, replaces: text }),
  z.object({ type: z.literal('message.finished'), messageId: text, text: textOrNull, finishReason: textOrNull }),
  z.object({ type: z.literal('tool_call.requested'), messageId: text, toolCall }),
  z.object({ type: z.literal('approval.requested'), toolCall }),
  z.object({
    type: z.literal('approval.decided'),
    toolCall,
    approval: z.enum(['approved', 'remembered', 'denied']),
  }),
  z.object({
    type: z.literal('input.requested'),
    toolCallId: text,
    name: text,
    key: text,
    message: text,
    fields: z.array(z.custom<InputField>((value) => typeof value === 'object' && value !== null)).readonly(),
  }),
  z.object({ type: z.literal('input.answered'), toolCallId: text, key: text, declined: z.boolean() }),
  z.object({
    type: z.literal('tool.progress'),
    toolCallId: text,
    message: textOrNull,
    value: numberOrNull,
    total: numberOrNull,
  }),
  z.object({ type: z.literal('sub_chat.started'), toolCallId: text, name: text, subChatId: text, agent: text }),
  z.object({ type: z.literal('transferred'), agent: text }),
  z.object({
    type: z.literal('tool.result'),
    toolCallId: text,
    name: text,
    outcome,
    content: text,
    // What older processes write has none.
    attachments: z.array(attachment).readonly().default([]),
  }),
  z.object({ type: z.literal('queued'), queuedId: text, content: textOrNull, steer: z.boolean() }),
  z.object({ type: z.literal('dequeued'), queuedId: text, messageId: text }),
  z.object({ type: z.literal('unqueued'), queuedId: text }),
  z.object({ type: z.literal('transcript.cut'), messageId: text, content: text, removed: z.array(text).readonly() }),
  z.object({ type: z.literal('run.waiting'), toolCalls: z.array(toolCall).readonly() }),
  z.object({ type: z.literal('run.finished'), messageId: textOrNull }),
  z.object({ type: z.literal('run.cancelled') }),
  z.object({ type: z.literal('run.failed'), failure, retryInMs: numberOrNull }),
  z.object({
    type: z.literal('usage'),
    messageId: text,
    inputTokens: numberOrNull,
    outputTokens: numberOrNull,
    cost: textOrNull,
  }),
  z.object({ type: z.literal('resync') }),
])

// The annotation is one half of the check, that nothing is read that is no LiveEvent. This is the other half: when a
// LiveEvent has no schema here, or a narrower one, the default is no longer assignable.
type Readable<Event extends z.infer<typeof union> = LiveEvent> = z.ZodType<Event>

/** Reads an event that came from Redis. */
export const liveEventSchema: Readable = union
