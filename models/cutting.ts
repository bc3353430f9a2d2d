import type { Transaction } from 'sequelize'
import { ArgumentError } from '../src/errors.ts'
import type { AttachmentValue } from './attachment-value.ts'
import { dropBlobs } from './blobs.ts'
import { interruptTurn } from './cancelling.ts'
import { wantNow } from './claims.ts'
import type { Database } from './database.ts'
import { deathsForgiven } from './deaths.ts'
import { lockChat } from './lock.ts'
import { readFiles } from './read-row.ts'
import type { Role } from './rows.ts'
import { readOpenRound } from './staging.ts'
import { openSubChat, pauseOf } from './waiting.ts'

/** A question that is to be asked again, and what it is to say then. */
export interface Cut {
  readonly chatId: string
  /** A user message; or one behind it, which stands for the question that it came after; null = the last question. */
  readonly messageId: string | null
  /** What the question is to say: the message named has to be the question itself then. Null = what it says. */
  readonly text: string | null
  /** Also want the chat run now. */
  readonly want: boolean
  /** User messages from this position on came while the turn was being cancelled: they stay. Null = on the first look. */
  readonly arrivedFrom: number | null
}

export type CutOutcome =
  | {
      readonly kind: 'cut'
      readonly messageId: string
      readonly content: string
      /** Ids of the messages that are gone. */
      readonly removed: readonly string[]
      /** The files that went with them, for `purgeBlob`. */
      readonly files: readonly AttachmentValue[]
      /** Whether the chat is wanted by this: because it was asked for, or because of a message that stays. */
      readonly wanted: boolean
    }
  /** A process runs the chat, or it waits: that turn was cancelled, and the cancel is to be carried out first. */
  | { readonly kind: 'cancelled'; readonly messageId: string; readonly arrivedFrom: number; readonly claimed: boolean }

interface Placed {
  readonly id: string
  readonly position: number
  readonly role: Role
  readonly through: number | null
  /** Of results: the position of the message that requested the call. */
  readonly requestedAt: number | null
}

/**
 * Removes everything behind a question and starts its turn anew, unless a process runs the chat, it is parked, or a call of it has work
 * elsewhere: then the turn is cancelled, and nothing else is changed.
 * @throws {ArgumentError} when there is no such question.
 */
export async function cutTranscript(db: Database, cut: Cut, transaction: Transaction): Promise<CutOutcome> {
  const { chat, claimed } = await lockChat(db, cut.chatId, transaction)
  const messages = await readPlaces(db, chat.id, transaction)
  const question = questionOf(messages, cut)
  if (claimed || chat.parked || (await worksElsewhere(db, chat.id, transaction))) {
    if (chat.cancelTurn !== chat.turn) await interruptTurn(db, chat.id, transaction)
    return { kind: 'cancelled', messageId: question.id, arrivedFrom: cut.arrivedFrom ?? chat.nextPosition, claimed }
  }
  const arrivedFrom = cut.arrivedFrom ?? Number.POSITIVE_INFINITY
  const removed = messages.filter((message) => isBehind(message, question, arrivedFrom))
  const stays = messages.some(({ role, position }) => role === 'user' && position >= arrivedFrom)
  const wanted = cut.want || stays
  await db.write(
    `UPDATE ${db.tables.chats} SET turn = turn + 1, rounds = 0, compactions = 0, attempts = 0, deaths = ${deathsForgiven}, put_off = 0, failure = NULL, ` +
      'cancelled_turn = NULL, cancel_turn = NULL, cancel_seq = NULL, compact_attempts = 0, compact_at = NULL, ' +
      `${wanted ? wantNow(db) : wishFor(db)}, updated_at = ${db.dialect.now} WHERE id = $chatId`,
    { chatId: chat.id },
    transaction,
  )
  const content = await askAnew(db, question.id, cut.text, transaction)
  const ids = removed.map(({ id }) => id)
  const files = await deleteMessages(db, ids, transaction)
  await dropBlobs(db, files, transaction)
  return { kind: 'cut', messageId: question.id, content, removed: ids, files, wanted }
}

/**
 * Whether a call of the open round has a task or a sub-chat at work, which has to be ended with it. A parked chat is not the only one: of
 * a turn that was given up, or whose worker died, nothing else tells.
 */
async function worksElsewhere(db: Database, chatId: string, transaction: Transaction): Promise<boolean> {
  const open = await readOpenRound(db, chatId, transaction)
  return open.some((call) => openSubChat(call) !== null || pauseOf(call).task !== undefined)
}

/** The wish was for what is gone, unless something waits in the queue. */
function wishFor(db: Database): string {
  const waits = `EXISTS (SELECT 1 FROM ${db.tables.queuedMessages} q WHERE q.chat_id = $chatId)`
  return `wanted_at = CASE WHEN ${waits} THEN wanted_at ELSE NULL END`
}

/** Returns what the question says now. */
async function askAnew(db: Database, id: string, text: string | null, transaction: Transaction): Promise<string> {
  const { messages } = db.tables
  if (text === null) {
    const [raw] = await db.read(`SELECT content FROM ${messages} WHERE id = $id`, { id }, transaction)
    return (raw?.content as string | null | undefined) ?? ''
  }
  await db.write(
    `UPDATE ${messages} SET content = $text, updated_at = ${db.dialect.now} WHERE id = $id`,
    { id, text },
    transaction,
  )
  return text
}

/**
 * Instructions stay, and so do summaries of what comes before the question, and results of calls before it, which would
 * otherwise be open again.
 */
function isBehind(message: Placed, question: Placed, arrivedFrom: number): boolean {
  const { role, position, through, requestedAt } = message
  if (role === 'system' || position <= question.position) return false
  if (through !== null) return through >= question.position
  if (requestedAt !== null && requestedAt < question.position) return false
  return role !== 'user' || position < arrivedFrom
}

function questionOf(messages: readonly Placed[], { chatId, messageId, text }: Cut): Placed {
  const named = messageId === null ? messages.at(-1) : messages.find(({ id }) => id === messageId)
  const through = named?.position ?? -1
  const question = messages.findLast(({ role, position }) => role === 'user' && position <= through)
  const isQuestion = question !== undefined && question === named
  if (question !== undefined && (text === null || isQuestion)) return question
  const problem =
    messageId === null
      ? 'has no user message that could be asked again'
      : `has no user message ${messageId.slice(0, 60)}${text === null ? ', nor a message of that id behind one' : ''}`
  throw new ArgumentError(`Chat ${chatId} ${problem}: pass the id of one of messages().`, { chatId })
}

async function readPlaces(db: Database, chatId: string, transaction: Transaction): Promise<Placed[]> {
  const { messages, toolCalls } = db.tables
  const rows = await db.read(
    `SELECT m.id AS id, m.position AS position, m.role AS role, m.summary_through AS through, a.position AS requestedAt FROM ${messages} m ` +
      `LEFT JOIN ${toolCalls} t ON t.result_id = m.id LEFT JOIN ${messages} a ON a.id = t.message_id ` +
      'WHERE m.chat_id = $chatId ORDER BY m.position',
    { chatId },
    transaction,
  )
  const number = (value: unknown) => (value == null ? null : Number(value))
  return rows.map((raw) => ({
    id: raw.id as string,
    position: Number(raw.position),
    role: raw.role as Role,
    through: number(raw.through),
    requestedAt: number(raw.requestedAt),
  }))
}

/** Their calls go with them; the usage entries stay, without a message. Returns the files that they had. */
async function deleteMessages(
  db: Database,
  ids: readonly string[],
  transaction: Transaction,
): Promise<AttachmentValue[]> {
  const files: AttachmentValue[] = []
  for (let from = 0; from < ids.length; from += 500) {
    const some = ids.slice(from, from + 500)
    const named = `WHERE id IN (${some.map((_, at) => `$id${at}`).join(', ')})`
    const bind = Object.fromEntries(some.map((id, at) => [`id${at}`, id]))
    const { messages } = db.tables
    const rows = await db.read(
      `SELECT attachments FROM ${messages} ${named} AND attachments IS NOT NULL`,
      bind,
      transaction,
    )
    for (const { attachments } of rows) {
      files.push(...readFiles(attachments, db.dialect))
    }
    await db.write(`DELETE FROM ${messages} ${named}`, bind, transaction)
  }
  return files
}
