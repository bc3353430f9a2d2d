import { z } from 'zod'
import type { Json, JsonObject } from '../../../models/rows.ts'
import type { AnswerMessage } from './schema.ts'

/**
 * What `rawReasoning` holds for this protocol: the reasoning under the names that the provider used for it, so that it
 * goes back under the same names, unchanged. A name that the provider didn't use is missing.
 */
export interface RawReasoning {
  /** DeepSeek, Kimi, xAI, vLLM. */
  readonly reasoning_content?: string
  /** OpenRouter, Ollama. */
  readonly reasoning?: string
  /** OpenRouter: texts, summaries and encrypted blocks with their signatures. */
  readonly reasoning_details?: JsonObject[]
  /** Mistral: the thinking parts that stood in `content` before the text. */
  readonly content_parts?: JsonObject[]
}

const jsonObjects = z.array(z.custom<JsonObject>((value) => isObject(value)))
const rawReasoning = z.object({
  reasoning_content: z.string().exactOptional(),
  reasoning: z.string().exactOptional(),
  reasoning_details: jsonObjects.exactOptional(),
  content_parts: jsonObjects.exactOptional(),
})

/** Reads a stored `rawReasoning`; null for null and for what another protocol stored. */
export function readRawReasoning(stored: Json | null): RawReasoning | null {
  const read = rawReasoning.safeParse(stored)
  return read.success ? read.data : null
}

/** Collects the reasoning of one answer: the text to show once, and everything that must go back. */
export class ReasoningCollector {
  #text = ''
  #content: string | undefined
  #reasoning: string | undefined
  readonly #details: JsonObject[] = []
  readonly #parts: JsonObject[] = []
  #keptBytes = 0

  /** What the reasoning takes up so far, in bytes: the text to show, and what goes back as JSON. */
  get keptBytes(): number {
    return this.#keptBytes
  }

  /** The text so far, null if there was none. */
  get text(): string | null {
    return this.#text === '' ? null : this.#text
  }

  /** Takes a message or a delta, and returns the reasoning text in it. What is sent under several names counts once. */
  add(message: AnswerMessage): string {
    if (typeof message.reasoning_content === 'string') this.#content = (this.#content ?? '') + message.reasoning_content
    if (typeof message.reasoning === 'string') this.#reasoning = (this.#reasoning ?? '') + message.reasoning
    const details = (message.reasoning_details ?? []).filter(isObject)
    for (const detail of details) mergeDetail(this.#details, detail)
    for (const kept of [message.reasoning_content, message.reasoning, ...details]) this.#count(kept)
    return this.#show(message.reasoning_content || message.reasoning || details.map(detailText).join(''))
  }

  /** Takes a thinking part of `content`, and returns its text. */
  addPart(part: JsonObject): string {
    this.#count(part)
    const previous = this.#parts.at(-1)
    if (previous && previous.closed !== true) mergePart(previous, part)
    else this.#parts.push(structuredClone(part))
    return this.#show(partText(part))
  }

  /** What must go back to the provider, null if it sent no reasoning. */
  raw(): Json | null {
    const raw: JsonObject = {}
    if (this.#content !== undefined) raw.reasoning_content = this.#content
    if (this.#reasoning !== undefined) raw.reasoning = this.#reasoning
    if (this.#details.length > 0) raw.reasoning_details = this.#details
    if (this.#parts.length > 0) raw.content_parts = this.#parts
    return Object.keys(raw).length === 0 ? null : raw
  }

  #count(kept: Json | undefined): void {
    if (kept !== null && kept !== undefined) this.#keptBytes += jsonBytes(kept)
  }

  #show(text: string): string {
    this.#text += text
    this.#keptBytes += Buffer.byteLength(text)
    return text
  }
}

/** Streams cut a detail into pieces that share its index and type; texts are joined, other fields arrive once. */
function mergeDetail(details: JsonObject[], piece: JsonObject): void {
  const last = details.at(-1)
  const continues =
    last !== undefined && typeof piece.index === 'number' && last.index === piece.index && last.type === piece.type
  if (!continues) {
    details.push({ ...piece })
    return
  }
  for (const [key, value] of Object.entries(piece)) {
    const before = last[key]
    const joins = (key === 'text' || key === 'summary' || key === 'data') && typeof before === 'string'
    if (joins && typeof value === 'string') last[key] = before + value
    else if (value !== null) last[key] = value
  }
}

function mergePart(part: JsonObject, piece: JsonObject): void {
  for (const [key, value] of Object.entries(piece)) {
    if (key === 'thinking') part[key] = joinThinking(part[key], value)
    else if (value !== null) part[key] = value
  }
}

function joinThinking(before: Json | undefined, after: Json): Json {
  if (typeof before === 'string' && typeof after === 'string') return before + after
  // A copy each time would take for ever over many pieces; what was there before belongs to this answer alone.
  const joined = asList(before)
  for (const item of asList(after)) {
    const last = joined.at(-1)
    if (isObject(last) && isObject(item) && typeof last.text === 'string' && typeof item.text === 'string') {
      last.text += item.text
    } else joined.push(structuredClone(item))
  }
  return joined
}

function partText(part: JsonObject): string {
  const thinking = part.thinking
  if (typeof thinking === 'string') return thinking
  return asList(thinking)
    .map((item) => (isObject(item) && typeof item.text === 'string' ? item.text : ''))
    .join('')
}

function detailText(detail: JsonObject): string {
  const text = detail.text ?? detail.summary
  return typeof text === 'string' ? text : ''
}

/** How many bytes a value takes as JSON. */
export function jsonBytes(value: Json): number {
  return Buffer.byteLength(JSON.stringify(value))
}

function asList(value: Json | undefined): Json[] {
  if (Array.isArray(value)) return value
  return typeof value === 'string' ? [{ type: 'text', text: value }] : []
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
