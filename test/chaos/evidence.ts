import type { QueuedMessageRow, UsageRow } from '../../models/rows.ts'
import type { JournalEntry } from '../../src/testing/crashes/journal.ts'
import type { ChatState } from '../../src/testing/crashes/snapshot.ts'
import type { LoggedRequest } from '../../src/testing/index.ts'
import type { Book } from './book.ts'
import type { Standstill, Take, WorkerLife } from './fleet.ts'
import type { DatabaseName } from './plan.ts'
import type { Tally } from './tally.ts'
import type { Silence } from './watch.ts'

/** The rows of a chat after everything came to rest. */
export interface ChatEvidence extends ChatState {
  readonly queue: readonly Pick<QueuedMessageRow, 'content'>[]
  readonly usages: readonly UsageRow[]
}

/** What is known of a part that is over: its rows, the tools' ledger, the model's log, and what was done to it. */
export interface Evidence {
  readonly database: DatabaseName
  readonly chats: readonly ChatEvidence[]
  readonly book: Pick<Book, 'said' | 'decisions' | 'cancels'>
  /** In the order in which it was written. */
  readonly ledger: readonly JournalEntry[]
  /** In the order in which they came. */
  readonly requests: readonly LoggedRequest[]
  readonly lives: readonly Pick<WorkerLife, 'name' | 'pid' | 'from' | 'to'>[]
  readonly takes: readonly Take[]
  readonly stalls: readonly Standstill[]
  readonly silences: readonly Silence[]
  readonly tally: Pick<Tally, 'deaths' | 'freezes' | 'outages'>
}

/** What may never be: by the guarantees' numbers. */
export type Rule =
  /** A staged message is answered, or its failure is recorded; each is there once. */
  | 'message'
  /** One process at a time runs a chat; one that lost its claim changes nothing. */
  | 'claim'
  /** A committed answer is never asked for again. */
  | 'answer'
  /** A tool runs again only where its process was disturbed, by the same key. */
  | 'tool'
  /** Money spent is in the ledger. */
  | 'usage'
  /** What is stopped stops soon. */
  | 'stop'
  /** A wish is rung for. */
  | 'ring'
  /** A process ended by itself. */
  | 'process'

export interface Violation {
  readonly rule: Rule
  /** Null: it is about none. */
  readonly chatId: string | null
  readonly what: string
}
