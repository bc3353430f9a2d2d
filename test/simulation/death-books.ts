import type { SettingAside } from '../../models/deaths.ts'
import type { ChatRow } from '../../models/rows.ts'
import type { RowsPort } from '../../src/loop/ports.ts'
import type { World } from './world.ts'

/** What commits a move, by which the deaths of a chat are counted anew, if it stores a message. */
const storing = new Set<keyof RowsPort>([
  ...(['commitAnswer', 'commitToolResult', 'closeToolCalls', 'takeQueued', 'commitSummary'] as const),
])
/** The same, whatever it stores. */
const always = new Set<keyof RowsPort>(['settleCancelled', 'pauseToolCall', 'transfer'])

/** From so many deaths on a chat is run alone. */
const alone = 2

/** How a turn was given up that nobody has taken up since. */
interface GivenUp {
  readonly how: 'failed' | 'cancelled'
  readonly turn: number
}

/** The processes that each chat has cost since its last move, as somebody counts who sees them die. */
export class DeathBooks {
  readonly #world: World
  readonly #violate: (what: string) => void
  readonly #deaths = new Map<string, number>()
  readonly #givenUp = new Map<string, GivenUp>()

  constructor(world: World, violate: (what: string) => void) {
    this.#world = world
    this.#violate = violate
  }

  /** A chat is taken. @param lapsed whether whoever held it last never gave it back. */
  taken(chatId: string, lapsed: boolean): void {
    const chat = this.#world.tables.chat(chatId)
    const cost = this.#lifted(chat) + (lapsed ? 1 : 0)
    this.#deaths.set(chatId, cost)
    if (chat.deaths !== cost) this.#violate(`${chatId} has cost ${cost} processes, and its row says ${chat.deaths}`)
  }

  /** A process got a chat that was to be left alone from so many deaths on; null = whatever it has cost. */
  allowed(chatId: string, deathsBelow: number | null): void {
    const cost = this.#deaths.get(chatId) ?? 0
    if (deathsBelow !== null && cost >= deathsBelow)
      this.#violate(`${chatId} was taken, which has cost ${cost} processes`)
  }

  /** Whether a chat is to run with no other such chat beside it, and may have to wait for its place. */
  runsAlone(chatId: string): boolean {
    return (this.#deaths.get(chatId) ?? 0) >= alone || this.#world.tables.chat(chatId).deaths >= alone
  }

  /** A run begins to write by a claim of its own. Returns what is to be called once that is stored. */
  writes(name: keyof RowsPort, chatId: string): () => void {
    const before = this.#world.tables.chat(chatId).nextPosition
    return () => {
      const { failure, turn, nextPosition } = this.#world.tables.chat(chatId)
      if (always.has(name) || (storing.has(name) && nextPosition > before)) this.#deaths.delete(chatId)
      if (name === 'settleCancelled') this.#givenUp.set(chatId, { how: 'cancelled', turn })
      else if (failure !== null) this.#givenUp.set(chatId, { how: 'failed', turn })
    }
  }

  /**
   * Somebody is about to set a chat aside.
   * @param lapsed as of `taken`.
   * @returns what is to be called once that is stored; true = it was set aside.
   */
  setsAside({ chatId, deaths }: SettingAside, lapsed: boolean): () => boolean {
    const before = this.#world.tables.chat(chatId)
    const wasFailed = before.failure !== null
    const cost = this.#liftedFrom(before) + (lapsed ? 1 : 0)
    return () => {
      const { failure, turn } = this.#world.tables.chat(chatId)
      if (wasFailed || failure === null) return false
      if (cost < deaths) this.#violate(`${chatId} was set aside, and has cost ${cost} processes`)
      this.#deaths.set(chatId, cost)
      this.#givenUp.set(chatId, { how: 'failed', turn })
      return true
    }
  }

  #lifted(chat: ChatRow): number {
    const cost = this.#liftedFrom(chat)
    if (this.#isLifted(chat)) this.#givenUp.delete(chat.id)
    return cost
  }

  #liftedFrom(chat: ChatRow): number {
    const known = this.#deaths.get(chat.id) ?? 0
    return this.#isLifted(chat) ? (known < alone ? 0 : alone) : known
  }

  /** Whether somebody took the turn up again. A caller's single move of a chat that was given up lifts nothing. */
  #isLifted({ id, failure, cancelledTurn, turn }: ChatRow): boolean {
    const givenUp = this.#givenUp.get(id)
    if (givenUp === undefined) return false
    return givenUp.how === 'failed' ? failure === null : cancelledTurn === null && givenUp.turn === turn
  }
}
