import type { ChatEvent, LiveEvent } from './event.ts'
import { liveEventSchema } from './schema.ts'

// What an entry of the stream looks like: few fields with words for names, so that `XRANGE` in a terminal stays legible.
const TOKEN = 'token'
const NUMBER = 'number'
const EVENT = 'event'

/** An entry of a chat's stream, read. */
export interface StreamEntry {
  readonly id: string
  /** 0 = from outside any run, or unreadable. */
  readonly claimToken: number
  /** Counts what a run sends from 1, so that a hole shows. Null where no run sent it. */
  readonly number: number | null
  /** Null when this process can't read it. Readers share it: it is frozen. */
  readonly event: ChatEvent | null
}

/** The fields of an entry, as XADD takes them. */
export function entryFields(claimToken: number, number: number | null, event: LiveEvent): string[] {
  const numbered = number === null ? [] : [NUMBER, String(number)]
  return [TOKEN, String(claimToken), ...numbered, EVENT, JSON.stringify(event)]
}

/** Reads an entry, whoever wrote it. */
export function readEntry(chatId: string, id: string, fields: readonly string[]): StreamEntry {
  const claimToken = readCount(fieldOf(fields, TOKEN))
  if (claimToken === null) return { id, claimToken: 0, number: null, event: null }
  const number = claimToken === 0 ? null : readCount(fieldOf(fields, NUMBER))
  const event = liveEventSchema.safeParse(readJson(fieldOf(fields, EVENT)))
  return {
    id,
    claimToken,
    number,
    event: event.success ? Object.freeze({ ...event.data, id, chatId, claimToken }) : null,
  }
}

function fieldOf(fields: readonly string[], name: string): string {
  const at = fields.findIndex((field, index) => index % 2 === 0 && field === name)
  return at < 0 ? '' : (fields[at + 1] ?? '')
}

function readCount(value: string): number | null {
  const count = /^\d+$/.test(value) ? Number(value) : -1
  return Number.isSafeInteger(count) && count >= 0 ? count : null
}

function readJson(value: string): unknown {
  try {
    return JSON.parse(value)
  } catch {
    return undefined
  }
}
