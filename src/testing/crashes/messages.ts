import type { ConnectOptions } from '../../threadmill.ts'
import type { Death, RecordedWrite } from './trap.ts'

/** What the test's process tells a worker process, over the channel between them. */
export type Order =
  /** Load the application and connect. It answers `connected`. */
  | {
      readonly kind: 'connect'
      readonly app: string
      readonly options: ConnectOptions
      readonly tablePrefix: string
      /** The file that executions of tools are written to. */
      readonly journal: string
    }
  /** Start the workers. It answers `working` once they take jobs. */
  | { readonly kind: 'work' }
  /** Once nothing is left to do, count the writes anew, and die at this place. It answers `set`, with the writes until then. */
  | { readonly kind: 'set'; readonly death: Death | null }

/** What is known of the application, which the test's process does not load. */
export interface LoadedApp {
  /** The names of its own agents. */
  readonly agents: readonly string[]
  /** The names of tools that are never to be executed again: `onInterrupted: 'fail'`. */
  readonly once: readonly string[]
}

/** What it answers. Each order gets one answer. */
export type Answer =
  | ({ readonly kind: 'connected' } & LoadedApp)
  | { readonly kind: 'working' }
  | { readonly kind: 'set'; readonly writes: readonly RecordedWrite[] }
  | { readonly kind: 'failed'; readonly code: string; readonly message: string }
