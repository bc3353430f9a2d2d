import type { ConnectOptions } from '../../src/index.ts'
import type { Boundary } from './boundary.ts'

/** What a worker process is started with, as JSON in `THREADMILL_CHAOS`. */
export interface WorkerSetup {
  /** Also the model that it asks for, so that usage entries name it. */
  readonly name: string
  readonly options: ConnectOptions
  /** The file that executions of tools are written to. */
  readonly ledger: string
}

/** What is done to a worker at a boundary, by itself. */
export type Blow =
  | { readonly does: 'kill' }
  | { readonly does: 'stop' }
  | { readonly does: 'hold'; readonly ms: number }

/** What a worker is told, a line of JSON each. */
export type Order =
  /** Begin to take jobs. It answers `working`. */
  | { readonly kind: 'work' }
  | { readonly kind: 'trap'; readonly boundary: Boundary; readonly blow: Blow }
  /** The boundary that it was sent to is of no matter any more. */
  | { readonly kind: 'spare' }
  /** Whether the file of SQLite can grow. */
  | { readonly kind: 'disk'; readonly isFull: boolean }

/** What a worker says, a line of JSON each. */
export type Report =
  /** It is connected, and takes no jobs yet. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'working' }
  /** It is at the boundary, and the blow comes next. `texts`: the values of the statements there, in which ids of chats are. */
  | { readonly kind: 'trapped'; readonly does: Blow['does']; readonly texts: readonly string[] }
  /** It has taken a chat, and read it. */
  | { readonly kind: 'taken'; readonly chatId: string; readonly token: number }
  /** A job for a chat has begun; `job` says who rang. */
  | { readonly kind: 'started'; readonly chatId: string; readonly job: string }
  | { readonly kind: 'ended'; readonly chatId: string; readonly token: number | null; readonly outcome: string }
  /** Its event loop stood still for so long without having been told to. */
  | { readonly kind: 'stalled'; readonly ms: number }
  /** Something is wrong with the process itself. */
  | { readonly kind: 'broken'; readonly message: string }

/** The headers by which the model's log knows who asked. */
export const headers = { chat: 'x-threadmill-chat', worker: 'x-chaos-worker', token: 'x-chaos-claim' } as const
