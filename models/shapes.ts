import type { AttachmentValue } from './attachment-value.ts'
import type { Failure, Json, JsonObject } from './rows.ts'

// What the columns of JSON must hold to be used. Stored values are checked as they are read: who wrote them is not known.

export function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Files of a message. A digest becomes a path or a key, so it is looked at closely. */
export function isFiles(value: Json): boolean {
  return Array.isArray(value) && value.every((one) => isObject(one) && isFile(one))
}

function isFile({ id, filename, contentType, byteSize, digest }: { [Key in keyof AttachmentValue]?: Json }): boolean {
  const words = [id, filename, contentType].every((word) => typeof word === 'string')
  return words && Number.isSafeInteger(byteSize) && typeof digest === 'string' && /^[0-9a-f]{64}$/.test(digest)
}

/** Why a turn was given up. */
export function isFailure(value: Json): boolean {
  if (!isObject(value)) return false
  const { code, message, turn, at } = value
  return typeof code === 'string' && typeof message === 'string' && typeof turn === 'number' && isTime(at)
}

/** Stands for a failure that can't be read: the chat has failed all the same. */
export const unreadableFailure: Failure = {
  code: 'error',
  message: 'Why the turn was given up can not be read from its row.',
  turn: 0,
  at: new Date(0).toISOString(),
}

export function isTransfer(value: Json): boolean {
  return isObject(value) && typeof value.agent === 'string' && (value.inputs === null || isObject(value.inputs ?? null))
}

/** What a paused call waits on. */
export function isPause(value: Json): boolean {
  if (!isObject(value)) return false
  const { requests = [], task = null, subChat = null } = value
  return Array.isArray(requests) && requests.every(isRequest) && isTask(task) && isSubChat(subChat)
}

function isRequest(value: Json): boolean {
  if (!isObject(value)) return false
  const { key, message, fields, expiresAt = null, answer } = value
  const named = Array.isArray(fields) && fields.every((field) => isObject(field) && typeof field.name === 'string')
  return typeof key === 'string' && typeof message === 'string' && named && isEnd(expiresAt) && isObject(answer ?? {})
}

function isTask(value: Json): boolean {
  if (value === null) return true
  if (!isObject(value)) return false
  const { id, pollMs, nextPollAt, expiresAt = null } = value
  return typeof id === 'string' && typeof pollMs === 'number' && isTime(nextPollAt) && isEnd(expiresAt)
}

function isSubChat(value: Json): boolean {
  if (value === null) return true
  if (!isObject(value)) return false
  const { id, agent, expiresAt = null, outcome = null } = value
  return typeof id === 'string' && typeof agent === 'string' && isEnd(expiresAt) && isOutcome(outcome)
}

function isOutcome(value: Json): boolean {
  if (value === null) return true
  if (!isObject(value)) return false
  const { kind, content, message } = value
  if (kind === 'answered') return typeof content === 'string'
  return kind === 'cancelled' || (kind === 'failed' && typeof message === 'string')
}

function isEnd(value: Json): boolean {
  return value === null || isTime(value)
}

function isTime(value: Json | undefined): boolean {
  return typeof value === 'string' && !Number.isNaN(Date.parse(value))
}
