import { v7 as uuid } from 'uuid'
import * as z from 'zod'
import type { AddedMessage } from '../../models/adding.ts'
import { newMessage } from '../../models/new-message.ts'
import { newToolCall } from '../../models/new-tool-call.ts'
import type { ToolCallRow, ToolEncoding } from '../../models/rows.ts'
import { whyUnstorable } from '../../models/storable.ts'
import { freshCallId } from '../../models/turns.ts'
import type { AttachmentSource } from '../attachments/source.ts'
import { ArgumentError } from '../errors.ts'
import { isWithinLimit, TEXT_LIMIT_BYTES } from '../tools/text-limit.ts'

/** A message to add by hand. Texts have 8 MiB at most. */
export type AddedMessageInput =
  | {
      readonly role: 'system' | 'user'
      /** The text. */
      readonly content: string
      /** Of a user's message: its files. */
      readonly attachments?: AttachmentSource | readonly AttachmentSource[] | undefined
    }
  | {
      readonly role: 'assistant'
      /** The text; left out for a message of tool calls only. */
      readonly content?: string | null
      /** Reasoning to keep beside the text. */
      readonly thinking?: string | null
      /** Why the answer ended, in the provider's words. */
      readonly finishReason?: string | null
      /** The tools that it asked for. */
      readonly toolCalls?: readonly {
        /** The call's public id; made up where it is left out. */
        readonly id?: string
        /** The tool's name. */
        readonly name: string
        /** What it passes. Default: no arguments. */
        readonly arguments?: Record<string, unknown>
      }[]
    }
  | {
      readonly role: 'tool'
      /** The result, as the model gets it. */
      readonly content: string
      /** The public id of the call that it answers. */
      readonly toolCallId: string
      /** True: the call failed. Default false. */
      readonly isError?: boolean
      /** How the result is to be read back: as the text that it is (default), or as JSON. */
      readonly encoding?: ToolEncoding
      /** Its files. A second result for a call has none: the first is kept as it is. */
      readonly attachments?: AttachmentSource | readonly AttachmentSource[] | undefined
    }

const json: z.ZodType<Record<string, unknown>> = z.record(z.string(), z.unknown())
const text = z.string().refine(isWithinLimit, `may have ${TEXT_LIMIT_BYTES} bytes at most`)
const schema = z.discriminatedUnion('role', [
  z.strictObject({ role: z.literal('system'), content: text }),
  z.strictObject({ role: z.literal('user'), content: text, attachments: z.unknown().optional() }),
  z.strictObject({
    role: z.literal('assistant'),
    content: text.nullish(),
    thinking: text.nullish(),
    finishReason: z.string().nullish(),
    toolCalls: z
      .array(
        z.strictObject({
          id: z.string().min(1).max(255).optional(),
          name: z.string().min(1).max(255),
          arguments: json.optional(),
        }),
      )
      .optional(),
  }),
  z.strictObject({
    role: z.literal('tool'),
    content: text,
    toolCallId: z.string().min(1),
    isError: z.boolean().optional(),
    encoding: z.enum(['text', 'json']).optional(),
    attachments: z.unknown().optional(),
  }),
])

/**
 * A message by hand as rows.
 * @throws {ArgumentError} naming every part that is wrong.
 */
export function messageToAdd(chatId: string, input: AddedMessageInput): Omit<AddedMessage, 'pending'> {
  const parsed = schema.safeParse(input)
  if (!parsed.success) {
    const problems = parsed.error.issues
      .map((issue) => `${issue.path.join('.') || 'message'}: ${issue.message}`)
      .join('; ')
    throw new ArgumentError(`This is no message that chat ${chatId} can take. ${problems}`, { chatId })
  }
  const given = parsed.data
  const why = whyUnstorable({ ...given, attachments: null })
  if (why !== null) throw new ArgumentError(`A message for chat ${chatId} ${why}.`, { chatId })
  const id = uuid()
  const createdAt = new Date()
  const message = newMessage({
    id,
    chatId,
    role: given.role,
    content: given.content ?? null,
    thinkingText: given.role === 'assistant' ? (given.thinking ?? null) : null,
    finishReason: given.role === 'assistant' ? (given.finishReason ?? null) : null,
    outcome: given.role === 'tool' ? (given.isError === true ? 'failed' : 'succeeded') : null,
    encoding: given.role === 'tool' ? (given.encoding ?? 'text') : null,
    createdAt,
  })
  const requested = given.role === 'assistant' ? (given.toolCalls ?? []) : []
  const toolCalls = requested.map(
    (call, position): ToolCallRow =>
      // Nobody knows what the model was offered; a worker that lacks the tool says so to the model.
      newToolCall({
        id: uuid(),
        chatId,
        messageId: id,
        position,
        toolCallId: call.id ?? freshCallId(),
        name: call.name,
        arguments: (call.arguments ?? {}) as ToolCallRow['arguments'],
        createdAt,
      }),
  )
  return { message, toolCalls, answers: given.role === 'tool' ? given.toolCallId : null }
}
