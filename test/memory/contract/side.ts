import stringify from 'safe-stable-stringify'
import type { ChatRow } from '../../../models/rows.ts'
import type { Statements } from '../statements.ts'

/** One of the two that have to agree: rows in memory, or rows of a database. */
export interface Side {
  readonly statements: Statements
  addChat(chat: Partial<ChatRow> & Pick<ChatRow, 'id' | 'agent'>): Promise<void>
  /** Lets the database's clock go on, in ms. */
  advance(ms: number): Promise<void>
  now(): Date
  /** Every row of every table, as it is. */
  dump(): Promise<Dump>
}

export type Dump = Readonly<Record<Table, readonly object[]>>
export type Table = 'chats' | 'messages' | 'toolCalls' | 'queuedMessages' | 'receipts' | 'decisions' | 'usages'

const minuteMs = 60_000

/**
 * A value as both sides have it: times as whole minutes from now, since the two clocks differ by less; ids that were made
 * on the way by what they are for.
 */
export function normal(value: unknown, now: Date): unknown {
  if (value instanceof Date) return `${Math.round((value.getTime() - now.getTime()) / minuteMs)} min`
  if (Array.isArray(value)) return value.map((one) => normal(one, now))
  if (typeof value === 'string') return madeId.test(value) ? 'a made id' : value.replace(paddedZeros, '')
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key !== 'toMessage')
      .map(([key, one]) => [key, key === 'dueForMs' && typeof one === 'number' ? minutes(one) : normal(one, now)]),
  )
}

const madeId = /^(call_[0-9a-f]{32}|decision-\d+|.*-system(-\d+)?|[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21})$/

/** MariaDB fills decimals up to their scale. */
const paddedZeros = /(?<=^\d+\.\d*[1-9])0+$/

function minutes(ms: number): string {
  return `${Math.round(ms / minuteMs)} min`
}

/** All rows, in an order of their own that does not hang on ids. */
export function normalDump(dump: Dump, now: Date): Record<string, unknown[]> {
  return Object.fromEntries(
    Object.entries(dump).map(([table, rows]) => [
      table,
      rows.map((row) => normal(row, now)).toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1)),
    ]),
  )
}

function keyOf(row: unknown): string {
  const { chatId, position, id } = row as Record<string, unknown>
  return [chatId, String(position).padStart(6, '0'), id, stringify(row)].join()
}
