import type { ChatEvent, LiveEvent } from './event.ts'
import { liveEventSchema } from './schema.ts'

// What an entry of the stream looks like: two fields, so that `XRANGE` in a terminal stays legible.
const TOKEN = 'token'
const EVENT = 'event'

/** The fields of an entry, as XADD takes them. */
export function entryFields(claimToken: number, event: LiveEvent): string[] {
  return [TOKEN, String(claimToken), EVENT, JSON.stringify(event)]
}

/** The event in an entry's fields, or null when this process can't read it. */
export function readEntry(chatId: string, id: string, fields: readonly string[]): ChatEvent | null {
  const claimToken = readToken(fieldOf(fields, TOKEN))
  const event = liveEventSchema.safeParse(readJson(fieldOf(fields, EVENT)))
  return claimToken === null || !event.success ? null : { ...event.data, id, chatId, claimToken }
}

function fieldOf(fields: readonly string[], name: string): string {
  const at = fields.findIndex((field, index) => index % 2 === 0 && field === name)
  return at < 0 ? '' : (fields[at + 1] ?? '')
}

function readToken(value: string): number | null {
  const token = /^\d+$/.test(value) ? Number(value) : -1
  return Number.isSafeInteger(token) && token >= 0 ? token : null
}

function readJson(value: string): unknown {
  try {
    return JSON.parse(value)
  } catch {
    return undefined
  }
}
