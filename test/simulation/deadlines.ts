import type { SimulatedProcess } from './process.ts'
import type { World } from './world.ts'

/** Within which a chat that was rung for is taken where a worker is free, in ms of virtual time; a sweep comes later. */
const takenWithinMs = 8_000
/** Within which a run ends whose process may not act for the chat any more. */
const endsWithinMs = 4_000
/** Within which a model is no longer waited for that is asked for a cancelled turn. */
const stopsWithinMs = 8_000
/** What went wrong longer ago has no effect any more: jobs of the dead are back, locks and claims have lapsed. */
const forgottenMs = 60_000

/** What has to happen in time while nothing goes wrong; what is late for a reason is not looked at. */
export class Deadlines {
  readonly #world: World
  readonly #violate: (what: string) => void
  /** Who waits for the model, for each chat, and since when. */
  readonly #waiting = new Map<string, { readonly process: SimulatedProcess; readonly since: number }>()

  constructor(world: World, violate: (what: string) => void) {
    this.#world = world
    this.#violate = violate
  }

  /** A ring for a chat was heard. */
  rung(chatId: string): void {
    const { scheduler, tables, troubledUntil } = this.#world
    if (troubledUntil > scheduler.now - forgottenMs || !this.#isFree(chatId)) return
    const { now } = scheduler
    const { claimToken } = tables.chat(chatId)
    this.#inPeace(takenWithinMs, () => {
      const isTheSame = this.#isFree(chatId) && this.#world.tables.chat(chatId).claimToken === claimToken
      if (isTheSame && this.#world.processes.some((process) => process.isFreeSince(now))) {
        this.#violate(`${chatId} was rung for, a worker was free, and nobody took it within ${takenWithinMs} ms`)
      }
    })
  }

  /** Whether a chat is wanted, due, and nobody's; one that is to run alone may have to wait for its place. */
  #isFree(chatId: string): boolean {
    const { claimed, due } = this.#world.tables.look(chatId)
    return due && !claimed && !this.#world.monitor.deaths.runsAlone(chatId)
  }

  /** A claim is aborted: it is lost, or its process is to end. */
  aborted(process: SimulatedProcess, chatId: string, claimId: string): void {
    this.#inPeace(endsWithinMs, () => {
      if (process.isDead || !process.renewer.keeps(claimId)) return
      this.#violate(`${process.name} was told to leave ${chatId}, and ran it for another ${endsWithinMs} ms`)
    })
  }

  /** The running turn of a chat is cancelled. */
  cancelled(chatId: string): void {
    const { now } = this.#world.scheduler
    const { turn } = this.#world.tables.chat(chatId)
    this.#inPeace(stopsWithinMs, () => {
      const waiting = this.#waiting.get(chatId)
      if (waiting === undefined || waiting.process.isDead || waiting.since > now) return
      if (this.#world.tables.chat(chatId).cancelTurn !== turn) return
      this.#violate(`turn ${turn} of ${chatId} was cancelled, and its model is waited for ${stopsWithinMs} ms later`)
    })
  }

  /** The model begins to answer. Returns what is to be called when it is not waited for any more. */
  waits(process: SimulatedProcess, chatId: string): () => void {
    const waiting = { process, since: this.#world.scheduler.now }
    this.#waiting.set(chatId, waiting)
    return () => {
      if (this.#waiting.get(chatId) === waiting) this.#waiting.delete(chatId)
    }
  }

  /** Looks after so many ms in which nothing went wrong. */
  #inPeace(ms: number, look: () => void): void {
    const { scheduler } = this.#world
    const { now } = scheduler
    if (this.#world.troubledUntil >= now) return
    scheduler.after(ms, () => {
      if (this.#world.troubledUntil < now) look()
    })
  }
}
