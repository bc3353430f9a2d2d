import { chatNotFound } from '../../models/claims.ts'
import type {
  ChatRow,
  DecisionRow,
  MessageRow,
  QueuedMessageRow,
  ReceiptRow,
  ToolCallRow,
  TranscriptMessage,
  UsageRow,
} from '../../models/rows.ts'
import type { ChatLook } from '../../models/transcript.ts'
import type { NewMessage } from '../../models/turns.ts'
import { emptyChat } from '../support/empty-chat.ts'

/**
 * The rows of chats that live in this process alone. Each method of those who write here runs to its end without waiting,
 * as a transaction would; what is read is a copy, as of a database.
 */
export class MemoryTables {
  readonly chats = new Map<string, ChatRow>()
  readonly queuedMessages: QueuedMessageRow[] = []
  readonly usages: UsageRow[] = []
  readonly receipts: ReceiptRow[] = []
  readonly decisions: DecisionRow[] = []
  readonly #messages = new Map<string, MessageRow[]>()
  readonly #toolCalls = new Map<string, ToolCallRow[]>()
  readonly #now: () => Date

  /** @param now the database's clock. */
  constructor(now: () => Date) {
    this.#now = now
  }

  /** The database's clock. */
  now(): Date {
    return this.#now()
  }

  /** The row itself. @throws {ChatNotFoundError} */
  chat(chatId: string): ChatRow {
    const chat = this.chats.get(chatId)
    if (chat === undefined) throw chatNotFound(chatId)
    return chat
  }

  addChat(chat: Partial<ChatRow> & Pick<ChatRow, 'id' | 'agent'>): void {
    const now = this.now()
    this.chats.set(chat.id, { ...emptyChat, ...chat, createdAt: now, updatedAt: now })
  }

  /** The messages of a chat, in their order: the rows themselves. */
  messages(chatId: string): MessageRow[] {
    return listOf(this.#messages, chatId)
  }

  /** The calls of a chat, in the order in which they were made: the rows themselves. */
  toolCalls(chatId: string): ToolCallRow[] {
    return listOf(this.#toolCalls, chatId)
  }

  /** A call by the id of its row. */
  toolCall(id: string): ToolCallRow | null {
    for (const calls of this.#toolCalls.values()) {
      const found = calls.find((call) => call.id === id)
      if (found !== undefined) return found
    }
    return null
  }

  /** A call of a chat by the id of its row or by its public one. */
  findToolCall(chatId: string, call: string): ToolCallRow | null {
    return this.toolCalls(chatId).find(({ id, toolCallId }) => id === call || toolCallId === call) ?? null
  }

  /** Whether some call of some chat has that public id. */
  isTaken(toolCallId: string): boolean {
    for (const calls of this.#toolCalls.values()) if (calls.some((call) => call.toolCallId === toolCallId)) return true
    return false
  }

  /** Puts messages at the end of a chat. */
  append(chatId: string, messages: readonly NewMessage[], toolCalls: readonly ToolCallRow[] = []): void {
    const chat = this.chat(chatId)
    for (const message of messages) {
      this.messages(chatId).push({ ...message, position: chat.nextPosition++, updatedAt: message.createdAt })
    }
    this.toolCalls(chatId).push(...toolCalls.map((call) => ({ ...call })))
  }

  /** Keeps what was decided about a call. */
  audit(
    call: Pick<ToolCallRow, 'id' | 'chatId'>,
    decision: Pick<DecisionRow, 'action'> & Partial<Omit<DecisionRow, 'id' | 'chatId' | 'toolCallId'>>,
  ): void {
    const nothing = { decidedBy: null, reason: null, requestKey: null, value: null }
    const of = { id: `decision-${this.decisions.length}`, chatId: call.chatId, toolCallId: call.id }
    this.decisions.push({ ...nothing, ...of, createdAt: this.now(), ...decision })
  }

  queue(chatId: string): QueuedMessageRow[] {
    return this.queuedMessages.filter((row) => row.chatId === chatId)
  }

  /** Takes messages out of the queue; false, and nothing is taken, where one of them is not there. */
  unqueue(ids: readonly string[]): boolean {
    const places = ids.map((id) => this.queuedMessages.findIndex((row) => row.id === id))
    if (places.includes(-1)) return false
    for (const place of [...places].sort((a, b) => b - a)) this.queuedMessages.splice(place, 1)
    return true
  }

  /** The transcript behind what a summary up to `through` stands for, as `readRecent` reads it. */
  transcript(chatId: string, through: number | null): TranscriptMessage[] {
    const calls = new Map<string, ToolCallRow[]>()
    for (const call of this.toolCalls(chatId)) listOf(calls, call.messageId).push({ ...call })
    return this.messages(chatId)
      .filter((message) => through === null || isRecent(message, through))
      .map((message) => ({ ...message, toolCalls: calls.get(message.id) ?? [] }))
  }

  look(chatId: string): ChatLook {
    const chat = this.chat(chatId)
    const now = this.now().getTime()
    const queued = this.queue(chatId)
    const usages = this.usages.filter((usage) => usage.chatId === chatId)
    const asked = newest(usages.filter((usage) => usage.operation === 'chat'))
    const isStored = (id: string | null) => this.messages(chatId).some((message) => message.id === id)
    const summaries = this.messages(chatId).flatMap(({ summaryThrough }) => summaryThrough ?? [])
    return {
      chat: { ...chat },
      claimed: isClaimed(chat, now),
      due: chat.wantedAt !== null && chat.wantedAt.getTime() <= now,
      dueForMs: chat.wantedAt === null ? null : now - chat.wantedAt.getTime(),
      queued: { steering: queued.filter((row) => row.steer).length, total: queued.length },
      orphanedUsages: usages.filter(({ status, claimToken }) => status === 'pending' && claimToken < chat.claimToken)
        .length,
      draft: asked === null || asked.messageId !== null || isStored(asked.answerId) ? null : asked.answerId,
      compactDue: chat.compactAt !== null && chat.compactAt.getTime() <= now,
      summaryThrough: summaries.length === 0 ? null : Math.max(...summaries),
    }
  }
}

/** Whether a process holds the chat at that time, in ms. */
export function isClaimed(chat: ChatRow, now: number): boolean {
  return chat.claimedUntil !== null && chat.claimedUntil.getTime() > now
}

/** The entry with the last id: the order of ids is that of the attempts. */
export function newest(usages: readonly UsageRow[]): UsageRow | null {
  return usages.reduce<UsageRow | null>((last, usage) => (last === null || usage.id > last.id ? usage : last), null)
}

function isRecent({ position, role, summaryThrough }: MessageRow, through: number): boolean {
  if (summaryThrough !== null && summaryThrough !== through) return false
  return position > through || role === 'system'
}

function listOf<Row>(lists: Map<string, Row[]>, key: string): Row[] {
  const found = lists.get(key)
  if (found !== undefined) return found
  const list: Row[] = []
  lists.set(key, list)
  return list
}
