import { setTimeout } from 'node:timers/promises'
import { v4 as uuid } from 'uuid'
import { chatNotFound, claimLost, readUntaken, type TakeFor, takeChat, type Untaken } from '../../models/claims.ts'
import type { Database } from '../../models/database.ts'
import type { ClaimLostError } from '../errors.ts'
import type { CancelWatch } from './cancel-watch.ts'
import type { ClaimLock } from './claim-lock.ts'
import { elapsedMs, moment } from './elapsed.ts'
import type { KeptClaim, Renewer } from './renewer.ts'

/** How often a chat that nobody holds is tried again while its lock is on its way back. */
const LOCK_TRIES = 10
const LOCK_PAUSE_MS = 20

export interface ClaimsOptions {
  readonly db: Database
  readonly lock: ClaimLock
  readonly renewer: Renewer
  readonly cancels: CancelWatch
  readonly ttlMs: number
  /** What must be left of a claim before anything that takes time is begun, in ms. */
  readonly marginMs: number
  /** The agents that this process has. */
  readonly agents: () => readonly string[]
}

export type Taken =
  | { readonly kind: 'held'; readonly claim: Claim }
  | { readonly kind: 'refused'; readonly untaken: Untaken }

/** Where chats are taken. */
export class Claims {
  readonly #options: ClaimsOptions
  readonly #held = new Set<Claim>()

  constructor(options: ClaimsOptions) {
    this.#options = options
  }

  /**
   * Takes a chat: Redlock first as a cheap gate, then the database, which decides.
   * @throws {ChatNotFoundError} when there is no such chat.
   */
  async take(chatId: string, reason: TakeFor): Promise<Taken> {
    const { db, lock, renewer, ttlMs } = this.#options
    await renewer.ready()
    for (let tries = 1; ; tries++) {
      const claimId = uuid()
      const begun = moment()
      const isFree = await lock.acquire(chatId, claimId)
      if (isFree) {
        const taken = await takeChat(db, { chatId, claimId, ttlMs, reason, agents: this.#options.agents() }).catch(
          async (error: unknown) => {
            await lock.release(claimId)
            throw error
          },
        )
        if (taken) {
          const claim = new Claim(chatId, claimId, begun, this.#options, () => this.#held.delete(claim))
          this.#held.add(claim)
          return { kind: 'held', claim }
        }
        await lock.release(claimId)
      }
      const untaken = await readUntaken(db, chatId)
      if (untaken === null) throw chatNotFound(chatId)
      // The row is given back before the lock: whoever comes in between waits for the lock, which decides nothing.
      if (isFree || untaken.claimed || tries === LOCK_TRIES) return { kind: 'refused', untaken }
      await setTimeout(LOCK_PAUSE_MS)
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
  readonly #options: ClaimsOptions
  readonly #forget: () => void
  readonly #abort = new AbortController()

  constructor(chatId: string, claimId: string, begun: KeptClaim['last'], options: ClaimsOptions, forget: () => void) {
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
    this.#options.lock.renew(this.claimId)
  }

  onLost(): void {
    this.abort(claimLost(this.chatId))
  }

  watchCancel(onCancel: () => void): () => void {
    return this.#options.cancels.watch(this.chatId, onCancel)
  }

  /** @throws {ClaimLostError} unless enough of the claim is left; whatever aborted the claim comes first. */
  requireTime(): void {
    this.signal.throwIfAborted()
    const { ttlMs, marginMs } = this.#options
    if (elapsedMs(this.last) <= ttlMs - marginMs) return
    const lost: ClaimLostError = claimLost(this.chatId)
    this.abort(lost)
    throw lost
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
