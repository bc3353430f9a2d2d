import type { EventEmitter } from 'node:events'
import type { Readable } from 'node:stream'

/** A stream that output goes to. A terminal gets colours and progress bars. */
export type Output = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number }

/** What a command reads; a terminal is typed into. */
export type Input = Readable & { readonly isTTY?: boolean }

/** What a command has of the world around it. */
export interface Io {
  /** For what was asked for: it can be piped into another program. */
  readonly stdout: Output
  /** For everything said beside it. */
  readonly stderr: Output
  readonly stdin: Input
  /** The variables of the environment; left out, those of the process. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** Where signals and errors that nobody caught are heard: the process itself. One that another process started can talk to it. */
  readonly process: EventEmitter & Partial<Pick<NodeJS.Process, 'send' | 'disconnect' | 'ppid'>>
  /** Ends the process at once. */
  readonly exit: (code: number) => void
}
