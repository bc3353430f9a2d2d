import type { ClaimKey, Release, TakeFor, Untaken } from '../../models/claims.ts'
import type { CompactWishAfter, MeasuredContext, NewSummary } from '../../models/compaction.ts'
import type { SettingAside } from '../../models/deaths.ts'
import type { FoundApproval, NewPause } from '../../models/pausing.ts'
import type { Approval, Bell, ChatRow, QueuedMessageRow, ToolCallRow, TranscriptMessage } from '../../models/rows.ts'
import type { ChatLook } from '../../models/transcript.ts'
import type { NewTransfer } from '../../models/transferring.ts'
import type { NewAnswer, NewMessage, NewResult, UsageLink } from '../../models/turns.ts'
import type { NewUsage, UsageClosing } from '../../models/usages.ts'
import type { SubChatOutcome } from '../../models/waiting.ts'
import type { AttachmentSource, LoadedAttachment } from '../attachments/source.ts'
import type { LiveEvent } from '../events/event.ts'
import type { ToolTimers } from '../tools/limit.ts'

// Everything outside itself that the loop touches. The real parts stand behind these in a running system; a simulator
// can stand behind all of them.

/** A chat held by this run. */
export interface HeldClaim extends ClaimKey {
  /** Aborted with a {@link ClaimLostError} when the claim is gone, or with a {@link ShutdownError} at the end of the grace. */
  readonly signal: AbortSignal
  /** Resolves when a cancel of the running turn was seen; called at most once per `watchCancel`. */
  watchCancel(onCancel: () => void): () => void
  /** @throws {ClaimLostError} unless enough of the claim is left to begin something that takes time. */
  requireTime(): void
  /** Renews a tool call's claim along with the chat's, until the returned function is called. */
  keepToolCall(callId: string): () => void
  /** Stops renewing; the claim itself is given back by the release of the row. */
  end(): Promise<void>
}

export type Taken =
  | { readonly kind: 'held'; readonly claim: HeldClaim }
  | { readonly kind: 'refused'; readonly untaken: Untaken }

export interface ClaimsPort {
  /**
   * Takes a chat that has not cost so many processes; null = whatever it has cost.
   * @throws {ChatNotFoundError}
   */
  take(chatId: string, reason: TakeFor, deathsBelow: number | null): Promise<Taken>
}

/** The rows of a chat. Writes are fenced by the claim they are given. */
export interface RowsPort {
  /** @throws {ChatNotFoundError} */
  look(chatId: string): Promise<ChatLook>
  /** Without what a summary up to `through` stands for; null = everything. */
  transcript(chatId: string, through: number | null): Promise<TranscriptMessage[]>
  /** Tools approved for the rest of the chat. */
  remembered(chatId: string): Promise<Pick<ToolCallRow, 'name' | 'namespace'>[]>
  measuredContext(chatId: string): Promise<MeasuredContext | null>
  toolCalls(messageId: string): Promise<ToolCallRow[]>
  queue(chatId: string): Promise<QueuedMessageRow[]>
  commitAnswer(key: ClaimKey, answer: NewAnswer): Promise<boolean>
  startToolCall(key: ClaimKey, call: { id: string; approval: Approval | null }): Promise<boolean>
  setApproval(key: ClaimKey, call: FoundApproval): Promise<boolean>
  pauseToolCall(key: ClaimKey, pause: NewPause): Promise<boolean>
  commitToolResult(key: ClaimKey, result: NewResult): Promise<boolean>
  /** Tells the call that a sub-chat is for how it ended; false where it waits for that no longer. */
  reportToParent(subChat: ChatRow, outcome: SubChatOutcome, key: ClaimKey | null): Promise<boolean>
  /** Makes the chat another agent's. False = it is to be somebody else's by now: look again. */
  transfer(key: ClaimKey, transfer: NewTransfer): Promise<boolean>
  closeToolCalls(key: ClaimKey, results: readonly NewResult[]): Promise<void>
  takeQueued(
    key: ClaimKey,
    take: { queued: readonly QueuedMessageRow[]; messages: readonly NewMessage[]; startsTurn: boolean },
  ): Promise<boolean>
  settleCancelled(
    key: ClaimKey,
    settled: UsageLink & { shown: NewMessage | null; closed: readonly NewResult[] },
  ): Promise<void>
  release(key: ClaimKey, release: Omit<Release, keyof ClaimKey>): Promise<boolean>
  countCompaction(key: ClaimKey): Promise<boolean>
  commitSummary(key: ClaimKey, summary: NewSummary): Promise<boolean>
  releaseCompaction(key: ClaimKey, release: { seen: number; wish: CompactWishAfter; died?: boolean }): Promise<boolean>
  releaseCancelledCompaction(key: ClaimKey): Promise<boolean>
  /** Records that nobody is to run a chat that kills its processes. Needs no claim. */
  setAside(aside: SettingAside): Promise<boolean>
  openUsage(usage: NewUsage): Promise<void>
  closeUsage(id: string, closing: UsageClosing): Promise<void>
  closeOrphanedUsages(chatId: string, claimToken: number): Promise<void>
}

/** Wakes workers. Best effort: a ring that is lost is rung again by the sweeper. */
export interface BellPort {
  ring(chatId: string, queue: Bell): Promise<void>
}

/** Where viewers look. Best effort too. */
export interface EventsPort {
  publish(chatId: string, claimToken: number, event: LiveEvent): void
  /** Resolves when everything published so far has been sent or given up. */
  flush(chatId: string): Promise<void>
  /** Drops what was published for a chat that is gone, and what is kept of it. */
  forget(chatId: string): Promise<void>
}

/** Where the files that tools attach are kept. */
export interface FilesPort {
  /** Reads files and stores their bytes, which no message holds by that. @throws {AttachmentError} for what can't be attached. */
  store(sources: AttachmentSource | readonly AttachmentSource[]): Promise<readonly LoadedAttachment[]>
  /** Makes sure that the bytes are still there; for the transaction that holds them. */
  keep(files: readonly LoadedAttachment[]): Promise<void>
  /** Deletes those that no message holds. Never rejects. */
  purge(files: readonly LoadedAttachment[]): Promise<void>
}

export interface ClockPort {
  now(): Date
  random(): number
  /** Rejects with the signal's reason when it is aborted. */
  wait(ms: number, signal: AbortSignal): Promise<void>
  newId(): string
  /** What the time limits of tools run on. */
  readonly timers: ToolTimers
}
