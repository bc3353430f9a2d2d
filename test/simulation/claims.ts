import { Claims } from '../../src/claims/claims.ts'
import { type Clocks, elapsedMs, momentBefore } from '../../src/claims/elapsed.ts'
import { Renewal } from '../../src/claims/renewal.ts'
import type { KeptClaim, Renewer } from '../../src/claims/renewer.ts'
import { helper } from './agent.ts'
import { CancelLooks } from './cancel-looks.ts'
import type { SimulatedProcess } from './process.ts'
import { marginMs, renewalTickMs, renewMs, ttlMs } from './times.ts'
import type { World } from './world.ts'

/** The claims of one process: the real ones, in virtual time. */
export function claimsOf(world: World, process: SimulatedProcess, renewer: SimulatedRenewer): Claims {
  const chatIds = new Map<string, string>()
  const redis = <T>(what: string, effect: () => T) =>
    process.call(what, async () => effect(), { statement: false, ms: 5 })
  return new Claims({
    rows: process.statements,
    lock: {
      acquire(chatId, claimId) {
        chatIds.set(claimId, chatId)
        return redis('lock', () => world.redis.lock(chatId, claimId, ttlMs))
      },
      renew(claimId, leftMs) {
        if (leftMs >= 1) world.redis.lock(chatIds.get(claimId) ?? '', claimId, leftMs)
      },
      release: (claimId) => redis('unlock', () => world.redis.unlock(chatIds.get(claimId) ?? '', claimId)),
    },
    renewer,
    cancels: new CancelLooks(process),
    ttlMs,
    marginMs,
    agents: () => [helper.name],
    clock: {
      clocks: process.clocks,
      wait: (ms) => new Promise<void>((resolve) => process.later(ms, resolve)),
      newId: () => world.newId('claim'),
    },
  })
}

/** Keeps claims by the real renewal, in a thread of its own. */
export class SimulatedRenewer implements Pick<Renewer, 'ready' | 'keep' | 'drop' | 'keepCall' | 'catchUp'> {
  readonly #process: SimulatedProcess
  readonly #clocks: Clocks
  readonly #renewal: Renewal
  readonly #kept = new Map<string, KeptClaim>()
  /** What the thread has said and the process has not heard yet. */
  readonly #said: (() => void)[] = []
  #ticking = false

  constructor(process: SimulatedProcess) {
    this.#process = process
    this.#clocks = process.clocks
    const onMain = (claimId: string, tell: (claim: KeptClaim) => void) => {
      this.#said.push(() => {
        const claim = this.#kept.get(claimId)
        if (claim !== undefined) tell(claim)
      })
      process.later(0, () => this.catchUp())
    }
    this.#renewal = new Renewal(
      {
        renewChat: (chatId, claimId) => process.statements.renewChat({ chatId, claimId }, ttlMs),
        renewToolCall: (callId, claimId) => process.statements.renewToolCall(callId, claimId, ttlMs),
      },
      { ttlMs, renewMs, marginMs },
      {
        renewed: (claimId, elapsed) =>
          onMain(claimId, (claim) => {
            claim.last = momentBefore(elapsed, this.#clocks)
            claim.onRenewed()
          }),
        lost: (claimId) => onMain(claimId, (claim) => claim.onLost()),
      },
      this.#clocks,
    )
  }

  async ready(): Promise<void> {}

  keep(claim: KeptClaim): void {
    this.#kept.set(claim.claimId, claim)
    this.#renewal.hold(claim.claimId, claim.chatId, elapsedMs(claim.last, this.#clocks))
    this.#tickLater()
  }

  drop(claimId: string): void {
    this.#kept.delete(claimId)
    this.#renewal.drop(claimId)
  }

  keepCall({ claimId }: KeptClaim, callId: string): () => void {
    this.#renewal.holdToolCall(claimId, callId)
    return () => this.#renewal.dropToolCall(claimId, callId)
  }

  catchUp(): void {
    for (const hear of this.#said.splice(0)) hear()
  }

  /** The claim by which this process runs a chat; null = it runs it by none. */
  claimOf(chatId: string): string | null {
    for (const claim of this.#kept.values()) if (claim.chatId === chatId) return claim.claimId
    return null
  }

  /** Whether a run under that claim has not ended. */
  keeps(claimId: string): boolean {
    return this.#kept.has(claimId)
  }

  #tickLater(): void {
    if (this.#ticking || this.#kept.size === 0) return
    this.#ticking = true
    this.#process.later(
      renewalTickMs,
      () => {
        this.#ticking = false
        void this.#renewal.tick()
        this.#tickLater()
      },
      'renewal',
    )
  }
}
