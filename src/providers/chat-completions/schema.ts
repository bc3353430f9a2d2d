import { z } from 'zod'
import type { JsonObject } from '../../../models/rows.ts'

/*
 * What is read of a Chat Completions answer. Servers that call themselves compatible send anything, so a field of the
 * wrong type counts as absent: one odd field must not cost the whole answer.
 */

const text = z.string().nullish().catch(null)
/** More than a column holds is no count of anything. */
const count = z.int32().nonnegative().nullish().catch(null)
/** Its items are looked at by whoever reads them, so that a long one costs nothing here. */
const items = z.custom<unknown[]>(Array.isArray)
const list = items.nullish().catch(null)
const jsonObject = z.custom<JsonObject>(isObject)

const identifier = z
  .union([z.string(), z.number().transform(String)])
  .nullish()
  .catch(null)

/** Some servers send the arguments as an object, already parsed. */
const argumentsText = z
  .union([z.string(), jsonObject.transform((value) => JSON.stringify(value))])
  .nullish()
  .catch(null)

const toolCall = z.object({
  index: z.number().int().nullish().catch(null),
  id: identifier,
  function: z.object({ name: text, arguments: argumentsText }).nullish().catch(null),
  /** Where Gemini's compatible endpoint keeps the signature that it wants back. */
  extra_content: z
    .object({ google: z.object({ thought_signature: text }).nullish() })
    .nullish()
    .catch(null),
})

const usage = z.object({
  prompt_tokens: count,
  completion_tokens: count,
  prompt_tokens_details: z.object({ cached_tokens: count, cache_write_tokens: count }).nullish().catch(null),
  completion_tokens_details: z.object({ reasoning_tokens: count }).nullish().catch(null),
  /** DeepSeek's name for cached tokens, and Mistral's. */
  prompt_cache_hit_tokens: count,
  num_cached_tokens: count,
  reasoning_tokens: count,
})

const message = z.object({
  content: z.union([z.string(), items]).nullish().catch(null),
  refusal: text,
  reasoning_content: text,
  reasoning: text,
  reasoning_details: list,
  tool_calls: z.array(toolCall.nullable().catch(null)).nullish().catch(null),
  annotations: list,
})

const choice = z.object({
  index: z.number().nullish().catch(null),
  delta: message.nullish().catch(null),
  message: message.nullish().catch(null),
  finish_reason: text,
  usage: usage.nullish().catch(null),
})

/** A whole JSON answer, or one chunk of a stream. */
export const answerBody = z.object({
  id: text,
  model: text,
  choices: z.array(choice.nullable().catch(null)).nullish().catch(null),
  usage: usage.nullish().catch(null),
  citations: list,
  search_results: list,
})

/** More choices and tool calls in one piece than any answer has; each of them takes time to read. */
const MAX_LISTED = 10_000

/** Whether a body lists so many choices or tool calls that it is no answer. */
export function isOverfull(body: unknown): boolean {
  if (!isObject(body) || !Array.isArray(body.choices)) return false
  const { choices } = body
  if (choices.length > MAX_LISTED) return true
  const listed = choices.flatMap((one) => (isObject(one) ? [one.delta, one.message] : [])).map(callCount)
  return listed.reduce((sum, count) => sum + count, 0) > MAX_LISTED
}

function callCount(message: unknown): number {
  return isObject(message) && Array.isArray(message.tool_calls) ? message.tool_calls.length : 0
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export type AnswerBody = z.infer<typeof answerBody>
export type AnswerChoice = z.infer<typeof choice>
export type AnswerMessage = z.infer<typeof message>
export type ToolCallDelta = z.infer<typeof toolCall>
export type ReportedUsage = z.infer<typeof usage>
