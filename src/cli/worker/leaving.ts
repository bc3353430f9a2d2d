import type { EventEmitter } from 'node:events'
import type { Bell } from '../../../models/rows.ts'
import { exitCodes } from '../exit-codes.ts'

/** One press in a terminal can arrive twice: from the terminal, and from a parent that passes its own on. */
const samePressMs = 300

const codes = { SIGTERM: exitCodes.terminated, SIGINT: exitCodes.interrupted, SIGHUP: exitCodes.hungUp } as const
export type LeavingSignal = keyof typeof codes

/** Why a worker ends. */
export type Reason =
  | { readonly kind: 'signal'; readonly signal: LeavingSignal }
  /** Nobody caught it: whatever runs in this process can't be trusted any more. */
  | { readonly kind: 'error'; readonly error: unknown }
  /** The worker of this queue takes nothing, and could not be helped. */
  | { readonly kind: 'stuck'; readonly queue: Bell }

export interface Leaving {
  /** Resolves with the first reason to end. */
  readonly reason: Promise<Reason>
  /** Gives the reason, or null when there is none yet. */
  readonly now: () => Reason | null
  /** Ends it because a worker of it is stuck; nothing, where it ends anyway. */
  stuck(queue: Bell): void
  /** Hears nothing any more. */
  stop(): void
}

/**
 * Hears the signals that end a worker, and errors that nobody caught. A second signal ends the process at once.
 * @param onLateError told of errors that nobody caught once it ends anyway.
 */
export function hearLeaving(
  source: EventEmitter,
  exit: (code: number) => void,
  onLateError: (error: unknown) => void,
): Leaving {
  let first: Reason | null = null
  let heardAt = 0
  let settle: (reason: Reason) => void = () => {}
  const reason = new Promise<Reason>((resolve) => {
    settle = resolve
  })
  const leave = (why: Reason): void => {
    first = why
    heardAt = performance.now()
    settle(why)
  }
  const hear = (signal: LeavingSignal) => (): void => {
    if (first === null) leave({ kind: 'signal', signal })
    else if (performance.now() - heardAt > samePressMs) exit(codes[signal])
  }
  const hearError = (error: unknown): void => {
    if (first === null) leave({ kind: 'error', error })
    else onLateError(error)
  }
  const listeners: [string, (value: unknown) => void][] = [
    ...(Object.keys(codes) as LeavingSignal[]).map((signal): [string, () => void] => [signal, hear(signal)]),
    ['uncaughtException', hearError],
    ['unhandledRejection', hearError],
  ]
  for (const [event, listener] of listeners) source.on(event, listener)
  return {
    reason,
    now: () => first,
    stuck(queue) {
      if (first === null) leave({ kind: 'stuck', queue })
    },
    stop() {
      for (const [event, listener] of listeners) source.off(event, listener)
    },
  }
}
