import { isNestedTooDeep } from './nesting.ts'

/** What a provider says about a failure, whatever the shape it says it in. */
export interface ProviderComplaint {
  /** Readable text, `''` when the provider said nothing. Keys in it are masked. */
  readonly message: string
  readonly type: string | undefined
  /** The code as sent, numbers included. */
  readonly code: string | undefined
}

/** What is looked through for words and keys: patterns take too long over a text of any length. */
const MAX_READ_LENGTH = 10_000
const MAX_MESSAGE_LENGTH = 1000
const MAX_DETAIL_LENGTH = 200
/** A shorter secret would mask parts of ordinary words. */
const MIN_SECRET_LENGTH = 8

const KEY_SHAPES = [
  /\b(?:sk|pk|rk|gsk|xai|pplx|fw|r8|hf|nvapi|csk|tgp)[-_][\w*.-]*[\w*]/g,
  /\bAIza[\w*-]{10,}/g,
  /\beyJ[\w-]+\.[\w-]+(?:\.[\w-]+)?/g,
  /(?<=\bBearer\s+)[^\s"',;]+/gi,
  /(?<=\bapi[ _-]?key\b[^:=\n]{0,20}[:=]\s*["']?)(?=\S*[\d_*-])[^\s"',;]{6,}/gi,
]

/** Masks whatever looks like an API key, and the secrets given: providers like to echo the key that they refuse. */
export function maskKeys(text: string, secrets: readonly string[] = []): string {
  let masked = text
  for (const secret of secrets) if (secret.length >= MIN_SECRET_LENGTH) masked = masked.replaceAll(secret, '***')
  for (const shape of KEY_SHAPES) masked = masked.replace(shape, '***')
  return masked
}

/**
 * Reads an error body: a string, `{ error: {...} }`, `{ error: '...' }`, a flat `{ message }` or `{ detail }`, JSON text,
 * HTML or plain text.
 */
export function readComplaint(body: unknown, secrets: readonly string[] = []): ProviderComplaint {
  const parsed = unwrap(typeof body === 'string' ? (parseJson(body) ?? body) : body)
  const value = isNestedTooDeep(parsed) ? {} : parsed
  const outer = isRecord(value) ? value : {}
  const inner = isRecord(outer.error) ? outer.error : {}
  const message = typeof value === 'string' ? plainText(begun(value)) : begun(messageOf(inner) || messageOf(outer))
  const short = (field: 'type' | 'code') => shortText(inner[field] ?? outer[field], secrets)
  return {
    message: cut(maskKeys(message.trim(), secrets), MAX_MESSAGE_LENGTH),
    type: short('type'),
    code: short('code'),
  }
}

/**
 * The error that a body with status 200 reports, as sent: beside an answer, inside a choice, or in its place.
 * @returns null when the body reports none.
 */
export function errorInAnswer(answer: unknown): unknown {
  const body = unwrap(answer)
  if (!isRecord(body)) return null
  if (body.error) return body
  if (Array.isArray(body.choices)) {
    return body.choices.find((choice) => isRecord(choice) && isRecord(choice.error)) ?? null
  }
  const isFlat = body.object === 'error' || body.type === 'error'
  return isFlat || typeof body.message === 'string' || 'detail' in body ? body : null
}

function messageOf(source: Record<string, unknown>): string {
  for (const key of ['message', 'error', 'detail', 'msg']) {
    const value = source[key]
    if (typeof value === 'string' && value !== '') return value
    if (value && key !== 'error') return JSON.stringify(value)
  }
  return ''
}

function plainText(text: string): string {
  if (!text.trimStart().startsWith('<')) return text
  return text
    .replace(/<(script|style)\b[\s\S]*?(<\/\1\s*>|$)/gi, ' ')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/** Gemini's compatible endpoint puts its error into a list of one. */
function unwrap(value: unknown): unknown {
  return Array.isArray(value) && value.length === 1 ? value[0] : value
}

function shortText(value: unknown, secrets: readonly string[]): string | undefined {
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' && value !== '' ? cut(maskKeys(begun(value), secrets), MAX_DETAIL_LENGTH) : undefined
}

function begun(text: string): string {
  return text.slice(0, MAX_READ_LENGTH)
}

function cut(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
