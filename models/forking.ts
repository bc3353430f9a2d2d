import type { Transaction } from 'sequelize'
import { v7 as uuid } from 'uuid'
import { AttachmentError } from '../src/errors.ts'
import { holdCopiedBlobs } from './blobs.ts'
import { chatColumns, messageColumns, selectList, toolCallColumns } from './columns.ts'
import type { Database } from './database.ts'
import { newToolCall } from './new-tool-call.ts'
import { readRow } from './read-row.ts'
import type { ChatRow, MessageRow, ToolCallRow, TranscriptMessage } from './rows.ts'
import { freshCallId } from './turns.ts'

// A fork is made of what one statement read of the old chat, which is not locked: whoever runs it goes on.

/** Rows of one statement: placeholders are limited, and so is a packet. */
const ROWS_AT_ONCE = 100
const CHARACTERS_AT_ONCE = 1_000_000

export interface Fork {
  /** The new chat's. */
  readonly id: string
  readonly source: ChatRow
  /** What is copied, in its order. */
  readonly messages: readonly TranscriptMessage[]
  /** The position of the last one, system messages and summaries aside; null where there is none. */
  readonly through: number | null
  /** Whether the last turn has its answer: nobody is told of its end again. */
  readonly answered: boolean
}

/** A chat as it is, without locking it. Null: there is none. */
export async function readChat(db: Database, id: string, transaction: Transaction): Promise<ChatRow | null> {
  const [raw] = await db.read(
    `SELECT ${selectList(chatColumns, 'c')} FROM ${db.tables.chats} c WHERE c.id = $id`,
    { id },
    transaction,
  )
  return raw === undefined ? null : readRow(chatColumns, raw, db.dialect)
}

/** Makes the new chat: idle, unclaimed and not wanted, with copies of the messages in their places. */
export async function insertFork(db: Database, fork: Fork, transaction: Transaction): Promise<void> {
  const { id, source, messages } = fork
  const { agent, model, provider, modelRowId, owner, settings, inputs } = source
  const now = new Date()
  const turn = messages.some(({ role }) => role === 'user') ? 1 : 0
  const chat: Partial<ChatRow> = {
    ...{ id, agent, model, provider, modelRowId, owner, settings, inputs, turn },
    endedTurn: turn > 0 && fork.answered ? turn : null,
    nextPosition: (messages.at(-1)?.position ?? -1) + 1,
    forkedFrom: source.id,
    forkedPosition: fork.through,
    createdAt: now,
    updatedAt: now,
  }
  await db.insert<ChatRow>(db.tables.chats, chatColumns, [chat], { transaction })
  const files = messages.flatMap(({ attachments }) => attachments ?? [])
  if (!(await holdCopiedBlobs(db, files, transaction))) {
    throw new AttachmentError(`A file of chat ${source.id} was removed while the chat was forked: fork it again.`, {
      chatId: source.id,
    })
  }
  const ids = new Map(messages.map((message) => [message.id, uuid()]))
  const idOf = (old: string) => ids.get(old) ?? null
  const copies = messages.map(({ toolCalls: _, ...message }) => ({
    ...message,
    id: idOf(message.id) ?? uuid(),
    chatId: id,
  }))
  for (const rows of chunksOf(copies, (message) => (message.content ?? '').length)) {
    await db.insert<MessageRow>(db.tables.messages, messageColumns, rows, { transaction })
  }
  const calls = messages.flatMap((message) => message.toolCalls.map((call) => copiedCall(call, id, idOf)))
  for (const rows of chunksOf(calls, (call) => JSON.stringify(call.arguments).length)) {
    await db.insert<ToolCallRow>(db.tables.toolCalls, toolCallColumns, rows, { transaction })
  }
}

/** As the provider knows it, with ids of its own. What was allowed for the rest of the old chat is not for the new one. */
function copiedCall(call: ToolCallRow, chatId: string, idOf: (old: string) => string | null): ToolCallRow {
  const { approval } = call
  const decided = approval === 'remembered' ? 'approved' : approval
  return {
    ...newToolCall(call),
    id: uuid(),
    chatId,
    messageId: idOf(call.messageId) ?? '',
    resultId: call.resultId === null ? null : idOf(call.resultId),
    toolCallId: freshCallId(),
    providerCallId: call.providerCallId ?? call.toolCallId,
    approval: decided === 'pending' ? null : decided,
    claimedBy: null,
    claimedUntil: null,
    startedAt: null,
    mcpState: null,
    askedAt: null,
    expiresAt: null,
  }
}

function chunksOf<Row>(rows: readonly Row[], charactersOf: (row: Row) => number): Row[][] {
  const chunks: Row[][] = []
  let characters = 0
  for (const row of rows) {
    const chunk = chunks.at(-1)
    characters += charactersOf(row)
    if (chunk !== undefined && chunk.length < ROWS_AT_ONCE && characters <= CHARACTERS_AT_ONCE) chunk.push(row)
    else {
      chunks.push([row])
      characters = charactersOf(row)
    }
  }
  return chunks
}
