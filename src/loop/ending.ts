import { isDiskFull } from '../../config/full-disk.ts'
import { isLostConnection } from '../../config/lost-connection.ts'
import { isLockConflict } from '../../config/transaction.ts'
import type { WishAfter } from '../../models/claims.ts'
import type { Bell, ChatRow, Failure } from '../../models/rows.ts'
import { ThreadmillError } from '../errors.ts'
import { defaultAttempts } from '../tools/define-agent.ts'
import { wellFormed } from '../tools/results.ts'
import type { LoopPorts } from './run-context.ts'

/** How a run ends: what its release writes. */
export interface Ending {
  readonly wish: WishAfter
  readonly parked: boolean
  readonly failure: Failure | null
}

/** Waits before the runs of a turn that failed in a way that may pass, in ms; then the last one again. */
const retryDelaysMs = [5_000, 30_000, 120_000, 600_000]
const messageLimit = 2_000

export const missingAgent = 'configuration.missing_agent'
/** 1, 2, 4, 8, 16 s, then 30 s each time: ten minutes in all. */
export const putOffLimit = 24

/** How long a worker that lacks the chat's agent or a tool puts it off, in ms. `random`: 0 to 1, for the jitter. */
export function putOffDelayMs(before: number, random: number): number {
  return Math.min(30_000, 1_000 * 2 ** before) * (0.75 + random / 2)
}

export const resting: Ending = { wish: { kind: 'none' }, parked: false, failure: null }
export const parked: Ending = { wish: { kind: 'none' }, parked: true, failure: null }

/** The chat goes to another worker, which can start at once. */
export function handedOver(queue: Bell): Ending {
  return { wish: { kind: 'now', queue }, parked: false, failure: null }
}

/** Runs that are made for a chat whose run ended before it was configured, as where its rows could not be read. */
export function attemptsOf({ agentNamed }: Pick<LoopPorts, 'agentNamed'>, agent: string | null): number {
  return (agent === null ? null : agentNamed(agent))?.attempts ?? defaultAttempts
}

/** What a run that ends with an error leaves behind. */
export function endingOf(
  error: unknown,
  run: {
    readonly chat: ChatRow
    /** A caller makes the moves one by one, and decides about the next one too. */
    readonly byHand: boolean
    readonly committed: boolean
    readonly maxAttempts: number
    readonly now: Date
    readonly random: number
  },
): Ending {
  const code = codeOf(error)
  // Neither is a failure of the turn: someone else can go on with it.
  if (code === 'shutdown') return handedOver('complete')
  if (code === missingAgent && run.chat.putOff < putOffLimit) {
    return {
      wish: { kind: 'put-off', delayMs: putOffDelayMs(run.chat.putOff, run.random) },
      parked: false,
      failure: null,
    }
  }
  if (run.byHand) return run.chat.wantedAt === null ? resting : handedOver('complete')
  // A committed message starts the count anew.
  const attempts = run.committed ? 1 : run.chat.attempts
  if (isRetryable(error) && attempts < run.maxAttempts) {
    return { wish: { kind: 'later', delayMs: retryDelayAfter(attempts) }, parked: false, failure: null }
  }
  return { wish: { kind: 'none' }, parked: false, failure: failureOf(error, run.chat.turn, run.now) }
}

/** How long a turn waits after so many attempts, in ms. */
export function retryDelayAfter(attempts: number): number {
  return retryDelaysMs[Math.min(attempts, retryDelaysMs.length) - 1] ?? 5_000
}

export function failureOf(error: unknown, turn: number, at: Date): Failure {
  const message = error instanceof Error ? error.message : String(error)
  // Whatever was thrown: a failure that can't be stored would have the chat begun again and again.
  return {
    code: wellFormed(codeOf(error)),
    message: wellFormed(message.slice(0, messageLimit)),
    turn,
    at: at.toISOString(),
  }
}

export function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null | undefined)?.code
  return typeof code === 'string' ? code : 'error'
}

/** Whether the same turn may succeed later: our errors say so themselves; of others, a database that is away, busy or full. */
export function isRetryable(error: unknown): boolean {
  if (error instanceof ThreadmillError) return error.retryable
  const name = error instanceof Error ? error.name : ''
  return (
    isLockConflict(error) ||
    isLostConnection(error) ||
    isDiskFull(error) ||
    /^SequelizeConnection|^SequelizeHost/.test(name)
  )
}
