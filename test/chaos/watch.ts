import type { Database } from '../../models/database.ts'
import type { Violation } from './evidence.ts'

/** A chat as its row says. */
export interface Sight {
  readonly id: string
  /** When it was asked for, in ms since the epoch: it is no older. */
  readonly at: number
  readonly claimedBy: string | null
  /** By the database's clock. */
  readonly isLive: boolean
  /** Until when it is claimed, and when that was looked up, by the database's clock, in ms since the epoch. */
  readonly until: number
  readonly now: number
  readonly token: number
  readonly wanted: 'no' | 'now' | 'later'
  readonly parked: boolean
  readonly failed: boolean
  readonly queued: number
  /** Calls that wait for a decision. */
  readonly pending: readonly string[]
}

/** A time in which the database did not answer. */
export interface Silence {
  readonly from: number
  readonly to: number
}

/** A look that takes so long says that the machine or the database stood still, in ms. */
const slowMs = 300
/** Chats of one statement. */
const most = 150

/** Looks at the rows of chats again and again, over a connection that no fault is about. */
export class Watch {
  /** What must never be seen of a claim. */
  readonly violations: Violation[] = []
  readonly silences: Silence[] = []
  readonly #db: Database
  /** Claims that were seen to have lapsed, by chat and token, and how that was seen. */
  readonly #lapsed = new Map<string, Sight>()
  /** Who held each claim. */
  readonly #holders = new Map<string, string>()

  constructor(db: Database) {
    this.#db = db
  }

  /** Reads these chats; null while the database does not answer. */
  async look(chatIds: readonly string[]): Promise<Map<string, Sight> | null> {
    const seen = new Map<string, Sight>()
    for (let first = 0; first < chatIds.length; first += most) {
      const from = Date.now()
      const sights = await this.#read(chatIds.slice(first, first + most)).catch(() => null)
      if (sights === null || Date.now() - from > slowMs) this.silences.push({ from, to: Date.now() })
      if (sights === null) return null
      for (const sight of sights) {
        await this.#check(sight)
        seen.set(sight.id, sight)
      }
    }
    return seen
  }

  async #read(chatIds: readonly string[]): Promise<Sight[]> {
    const { dialect, tables, read } = this.#db
    const at = Date.now()
    const among = chatIds.map((_, nth) => `$id${nth}`).join(', ')
    const ids = Object.fromEntries(chatIds.map((id, nth) => [`id${nth}`, id]))
    const later = `CASE WHEN c.wanted_at > ${dialect.now} THEN 2 ELSE 1 END`
    const chats = await read(
      `SELECT c.id AS id, c.claimed_by AS claimedBy, c.claimed_until AS claimedUntil, ${dialect.now} AS databaseNow, c.claim_token AS token, c.parked AS parked, ` +
        `CASE WHEN c.claimed_until > ${dialect.now} THEN 1 ELSE 0 END AS live, CASE WHEN c.failure IS NULL THEN 0 ELSE 1 END AS failed, ` +
        `CASE WHEN c.wanted_at IS NULL THEN 0 ELSE ${later} END AS wanted, ` +
        `(SELECT COUNT(*) FROM ${tables.queuedMessages} q WHERE q.chat_id = c.id) AS queued ` +
        `FROM ${tables.chats} c WHERE c.id IN (${among})`,
      ids,
    )
    const calls = await read(
      `SELECT id, chat_id AS chatId FROM ${tables.toolCalls} WHERE approval = 'pending' AND result_id IS NULL AND chat_id IN (${among})`,
      ids,
    )
    const timeOf = (value: unknown) => (value === null ? 0 : dialect.readTime(value).getTime())
    return chats.map((raw) => ({
      id: String(raw.id),
      at,
      claimedBy: raw.claimedBy === null ? null : String(raw.claimedBy),
      isLive: Number(raw.live) === 1,
      until: timeOf(raw.claimedUntil),
      now: timeOf(raw.databaseNow),
      token: Number(raw.token),
      wanted: (['no', 'now', 'later'] as const)[Number(raw.wanted)] ?? 'no',
      parked: Number(raw.parked) === 1,
      failed: Number(raw.failed) === 1,
      queued: Number(raw.queued),
      pending: calls.filter(({ chatId }) => chatId === raw.id).map(({ id }) => String(id)),
    }))
  }

  async #check(sight: Sight): Promise<void> {
    const { id, claimedBy, isLive, token, until, now } = sight
    if (claimedBy === null) return
    const claim = `${id}:${token}`
    const violate = (what: string) => this.violations.push({ rule: 'claim', chatId: id, what })
    const holder = this.#holders.get(claim)
    this.#holders.set(claim, claimedBy)
    if (holder !== undefined && holder !== claimedBy) violate(`Two processes have held it by claim ${token}.`)
    const lapsed = this.#lapsed.get(claim)
    if (lapsed === undefined) {
      if (!isLive && (await this.#hasLapsed(sight))) this.#lapsed.set(claim, sight)
    } else if (until > lapsed.until) {
      // Looks may come in another order than they were made in, but no look shows a later end than there ever was.
      this.#lapsed.delete(claim)
      violate(
        `Claim ${token} was revived: ended ${lapsed.now - lapsed.until} ms before it was seen, and is to end ${until - now} ms after that.`,
      )
    }
  }

  /** Asks again by the lock of the row: a renewal that was in time may not be committed yet. False too while somebody else has it. */
  async #hasLapsed({ id, token }: Sight): Promise<boolean> {
    const { dialect, tables, sequelize, read } = this.#db
    // What SQLite has written is committed, or not to be seen.
    if (dialect.forUpdate === '') return true
    const sql = `SELECT claim_token AS token, CASE WHEN claimed_until <= ${dialect.now} THEN 1 ELSE 0 END AS lapsed FROM ${tables.chats} WHERE id = $id${dialect.forUpdate} NOWAIT`
    const [row] = await sequelize.transaction((transaction) => read(sql, { id }, transaction)).catch(() => [])
    return row !== undefined && Number(row.token) === token && Number(row.lapsed) === 1
  }
}
