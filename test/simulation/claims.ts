import { chatNotFound, claimLost, type TakeFor } from '../../models/claims.ts'
import { type Clocks, elapsedMs, type Moment, moment, momentBefore } from '../../src/claims/elapsed.ts'
import { Renewal } from '../../src/claims/renewal.ts'
import type { ClaimsPort, HeldClaim, Taken } from '../../src/loop/ports.ts'
import type { SimulatedProcess } from './process.ts'
import { cancelLookMs, marginMs, renewalTickMs, renewMs, ttlMs } from './times.ts'
import type { World } from './world.ts'

const lockTries = 10
const lockPauseMs = 20

/** Takes and keeps chats as `src/claims` does, by the real renewal, in virtual time. */
export class SimulatedClaims implements ClaimsPort {
  readonly clocks: Clocks
  readonly renewal: Renewal
  readonly #world: World
  readonly #process: SimulatedProcess
  readonly #held = new Map<string, SimulatedClaim>()
  readonly #watched = new Map<string, Set<() => void>>()
  #ticking = false
  #looking = false

  constructor(world: World, process: SimulatedProcess) {
    this.#world = world
    this.#process = process
    const { scheduler } = world
    this.clocks = { steady: () => scheduler.now, wall: () => scheduler.now }
    const onMain = (claimId: string, tell: (claim: SimulatedClaim) => void) =>
      process.later(0, () => {
        const claim = this.#held.get(claimId)
        if (claim !== undefined) tell(claim)
      })
    this.renewal = new Renewal(
      {
        renewChat: (chatId, claimId) => this.#renewChat(chatId, claimId),
        renewToolCall: (callId, claimId) =>
          process.call('renewToolCall', () => world.statements.renewToolCall(callId, claimId, ttlMs), {
            thread: 'renewal',
          }),
      },
      { ttlMs, renewMs, marginMs },
      {
        renewed: (claimId, elapsed) => onMain(claimId, (claim) => claim.renewed(elapsed)),
        lost: (claimId) => onMain(claimId, (claim) => claim.abort(claimLost(claim.chatId))),
      },
      this.clocks,
    )
  }

  #renewChat(chatId: string, claimId: string): Promise<boolean> {
    const { statements, monitor } = this.#world
    const renew = () => monitor.renewed({ chatId, claimId }, statements.renewChat({ chatId, claimId }, ttlMs))
    return this.#process.call('renewChat', renew, { thread: 'renewal' })
  }

  async take(chatId: string, reason: TakeFor): Promise<Taken> {
    for (let tries = 1; ; tries++) {
      const claimId = this.#world.newId('claim')
      const begun = moment(this.clocks)
      const isFree = await this.#redis('lock', () => this.#world.redis.lock(chatId, claimId, ttlMs))
      if (isFree) {
        try {
          if (await this.#take(chatId, claimId, reason))
            return { kind: 'held', claim: this.#hold(chatId, claimId, begun) }
        } catch (error) {
          await this.unlock(chatId, claimId)
          throw error
        }
        await this.unlock(chatId, claimId)
      }
      const untaken = await this.#process.call('untaken', () => this.#world.statements.untaken(chatId))
      if (untaken === null) throw chatNotFound(chatId)
      if (isFree || untaken.claimed || tries === lockTries) return { kind: 'refused', untaken }
      await this.pause(lockPauseMs)
    }
  }

  #take(chatId: string, claimId: string, reason: TakeFor): Promise<boolean> {
    const { statements, monitor } = this.#world
    const take = () =>
      monitor.taken({ chatId, claimId }, reason, statements.take({ chatId, claimId, ttlMs, reason, agents: [] }))
    return this.#process.call('take', take)
  }

  #hold(chatId: string, claimId: string, begun: Moment): SimulatedClaim {
    const claim = new SimulatedClaim({ chatId, claimId, begun, claims: this })
    this.#held.set(claimId, claim)
    this.renewal.hold(claimId, chatId, elapsedMs(begun, this.clocks))
    this.#tickLater()
    return claim
  }

  #tickLater(): void {
    if (this.#ticking || this.#held.size === 0) return
    this.#ticking = true
    this.#process.later(
      renewalTickMs,
      () => {
        this.#ticking = false
        void this.renewal.tick()
        this.#tickLater()
      },
      'renewal',
    )
  }

  /** The claim by which this process runs a chat; null = it runs it by none. */
  claimOf(chatId: string): string | null {
    for (const claim of this.#held.values()) if (claim.chatId === chatId) return claim.claimId
    return null
  }

  abortAll(reason: Error): void {
    for (const claim of this.#held.values()) claim.abort(reason)
  }

  async end(chatId: string, claimId: string): Promise<void> {
    this.#held.delete(claimId)
    this.renewal.drop(claimId)
    await this.unlock(chatId, claimId)
  }

  relock(chatId: string, claimId: string): void {
    this.#world.redis.lock(chatId, claimId, ttlMs)
  }

  unlock(chatId: string, claimId: string): Promise<void> {
    return this.#redis('unlock', () => this.#world.redis.unlock(chatId, claimId))
  }

  #redis<T>(what: string, effect: () => T): Promise<T> {
    return this.#process.call(what, async () => effect(), { statement: false, ms: 5 })
  }

  pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#process.later(ms, resolve))
  }

  /** One look a period for all chats that are watched, as `CancelWatch` has it. */
  watch(chatId: string, onCancel: () => void): () => void {
    const watchers = this.#watched.get(chatId) ?? new Set()
    this.#watched.set(chatId, watchers.add(onCancel))
    this.#lookLater()
    return () => {
      watchers.delete(onCancel)
      if (watchers.size === 0 && this.#watched.get(chatId) === watchers) this.#watched.delete(chatId)
    }
  }

  #lookLater(): void {
    if (this.#looking || this.#watched.size === 0) return
    this.#looking = true
    this.#process.later(cancelLookMs, () => {
      const asked = new Map([...this.#watched].map(([chatId, watchers]) => [chatId, [...watchers]]))
      const tell = (chatIds: readonly string[]) => {
        for (const chatId of chatIds) {
          const watching = this.#watched.get(chatId)
          for (const onCancel of asked.get(chatId) ?? []) if (watching?.delete(onCancel)) onCancel()
        }
      }
      const look = () => this.#world.statements.cancelledAmong([...asked.keys()])
      void this.#process
        .call('cancelledAmong', look, { idle: true })
        .then(tell, () => {})
        .finally(() => {
          this.#looking = false
          this.#lookLater()
        })
    })
  }
}

interface Held {
  readonly chatId: string
  readonly claimId: string
  readonly begun: Moment
  readonly claims: SimulatedClaims
}

class SimulatedClaim implements HeldClaim {
  readonly chatId: string
  readonly claimId: string
  readonly #claims: SimulatedClaims
  readonly #abort = new AbortController()
  #last: Moment

  constructor({ chatId, claimId, begun, claims }: Held) {
    this.chatId = chatId
    this.claimId = claimId
    this.#last = begun
    this.#claims = claims
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  abort(reason: Error): void {
    this.#abort.abort(reason)
  }

  renewed(elapsed: number): void {
    this.#last = momentBefore(elapsed, this.#claims.clocks)
    this.#claims.relock(this.chatId, this.claimId)
  }

  watchCancel(onCancel: () => void): () => void {
    return this.#claims.watch(this.chatId, onCancel)
  }

  requireTime(): void {
    this.signal.throwIfAborted()
    if (elapsedMs(this.#last, this.#claims.clocks) <= ttlMs - marginMs) return
    const lost = claimLost(this.chatId)
    this.abort(lost)
    throw lost
  }

  keepToolCall(callId: string): () => void {
    this.#claims.renewal.holdToolCall(this.claimId, callId)
    return () => this.#claims.renewal.dropToolCall(this.claimId, callId)
  }

  end(): Promise<void> {
    return this.#claims.end(this.chatId, this.claimId)
  }
}
