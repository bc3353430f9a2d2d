import { setTimeout } from 'node:timers/promises'
import { v4 as uuid } from 'uuid'
import {
  chatNotFound,
  claimLost,
  readUntaken,
  type TakeFor,
  type TakeOptions,
  takeChat,
  type Untaken,
} from '../../models/claims.ts'
import type { Database } from '../../models/database.ts'
import type { ClaimLostError } from '../errors.ts'
import type { CancelWatch } from './cancel-watch.ts'
import type { ClaimLock } from './claim-lock.ts'
import { type Clocks, elapsedMs, moment, realClocks } from './elapsed.ts'
import type { KeptClaim, Renewer } from './renewer.ts'

/** How often a chat that nobody holds is tried again while its lock is on its way back. */
const LOCK_TRIES = 10
const LOCK_PAUSE_MS = 20

/** The statements that taking a chat needs. */
export interface ClaimRows {
  take(options: TakeOptions): Promise<boolean>
  /** Null: there is no such chat. */
  untaken(chatId: string): Promise<Untaken | null>
}

/** Those of a real database. */
export function databaseClaimRows(db: Database): ClaimRows {
  return { take: (options) => takeChat(db, options), untaken: (chatId) => readUntaken(db, chatId) }
}

/** Time and ids as claims have them: this process's own, or those of a simulator. */
export interface ClaimClock {
  readonly clocks: Clocks
  /** Waits so many ms. */
  wait(ms: number): Promise<unknown>
  /** Made anew for each take. */
  newId(): string
}

const realClaimClock: ClaimClock = { clocks: realClocks, wait: (ms) => setTimeout(ms), newId: uuid }

export interface ClaimsOptions {
  readonly rows: ClaimRows
  readonly lock: ClaimLock
  readonly renewer: Pick<Renewer, 'ready' | 'keep' | 'drop' | 'keepCall' | 'catchUp'>
  readonly cancels: Pick<CancelWatch, 'watch'>
  readonly ttlMs: number
  /** What must be left of a claim before anything that takes time is begun, in ms. */
  readonly marginMs: number
  /** The agents that this process has. */
  readonly agents: () => readonly string[]
  /** Default: this process's own. */
  readonly clock?: ClaimClock
}

type Known = Required<ClaimsOptions>

export type Taken =
  | { readonly kind: 'held'; readonly claim: Claim }
  | { readonly kind: 'refused'; readonly untaken: Untaken }

/** Where chats are taken. */
export class Claims {
  readonly #options: Known
  readonly #held = new Set<Claim>()

  constructor(options: ClaimsOptions) {
    this.#options = { clock: realClaimClock, ...options }
  }

  /**
   * Takes a chat: Redlock first as a cheap gate, then the database, which decides.
   * @param deathsBelow leaves a chat alone that has cost so many processes; null = whatever it has cost.
   * @throws {ChatNotFoundError} when there is no such chat.
   */
  async take(chatId: string, reason: TakeFor, deathsBelow: number | null): Promise<Taken> {
    const { rows, lock, renewer, ttlMs, clock } = this.#options
    const agents = this.#options.agents()
    await renewer.ready()
    for (let tries = 1; ; tries++) {
      const claimId = clock.newId()
      let begun = moment(clock.clocks)
      const isFree = await lock.acquire(chatId, claimId)
      if (isFree) {
        // A statement that had to wait for a connection takes no time off the claim.
        const onSent = () => {
          begun = moment(clock.clocks)
        }
        const take = { chatId, claimId, ttlMs, reason, agents, deathsBelow, onSent }
        const taken = await rows.take(take).catch(async (error: unknown) => {
          await lock.release(claimId)
          throw error
        })
        if (taken) {
          const claim = new Claim(chatId, claimId, begun, this.#options, () => this.#held.delete(claim))
          this.#held.add(claim)
          return { kind: 'held', claim }
        }
        await lock.release(claimId)
      }
      const untaken = await rows.untaken(chatId)
      if (untaken === null) throw chatNotFound(chatId)
      // The row is given back before the lock: whoever comes in between waits for the lock, which decides nothing.
      if (isFree || untaken.claimed || tries === LOCK_TRIES) return { kind: 'refused', untaken }
      await clock.wait(LOCK_PAUSE_MS)
    }
  }

  /** How many chats this process holds. */
  get size(): number {
    return this.#held.size
  }

  /** Aborts whatever runs under the claims of this process. */
  abortAll(reason: Error): void {
    for (const claim of this.#held) claim.abort(reason)
  }
}

/** A chat held by this process until `end`, or until the claim is lost. */
export class Claim implements KeptClaim {
  readonly chatId: string
  readonly claimId: string
  readonly calls = new Set<string>()
  last
  readonly #options: Known
  readonly #forget: () => void
  readonly #abort = new AbortController()

  constructor(chatId: string, claimId: string, begun: KeptClaim['last'], options: Known, forget: () => void) {
    this.chatId = chatId
    this.claimId = claimId
    this.last = begun
    this.#options = options
    this.#forget = forget
    options.renewer.keep(this)
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  abort(reason: Error): void {
    this.#abort.abort(reason)
  }

  onRenewed(): void {
    this.#options.lock.renew(this.claimId, this.#options.ttlMs - elapsedMs(this.last, this.#options.clock.clocks))
  }

  onLost(): void {
    this.abort(claimLost(this.chatId))
  }

  watchCancel(onCancel: () => void): () => void {
    return this.#options.cancels.watch(this.chatId, onCancel)
  }

  /** @throws {ClaimLostError} unless enough of the claim is left; whatever aborted the claim comes first. */
  requireTime(): void {
    // After a block of the event loop the news of renewals may still be on its way.
    if (!this.#hasTime()) this.#options.renewer.catchUp()
    this.signal.throwIfAborted()
    if (this.#hasTime()) return
    const lost: ClaimLostError = claimLost(this.chatId)
    this.abort(lost)
    throw lost
  }

  #hasTime(): boolean {
    const { ttlMs, marginMs, clock } = this.#options
    return elapsedMs(this.last, clock.clocks) <= ttlMs - marginMs
  }

  keepToolCall(callId: string): () => void {
    return this.#options.renewer.keepCall(this, callId)
  }

  async end(): Promise<void> {
    this.#forget()
    this.#options.renewer.drop(this.claimId)
    await this.#options.lock.release(this.claimId)
  }
}
