import type { Transaction } from 'sequelize'
import { ChatNotFoundError, ClaimLostError } from '../src/errors.ts'
import type { Database } from './database.ts'
import { deathsForgiven, deathsSoFar, lapsed } from './deaths.ts'
import type { Bell, Failure } from './rows.ts'

/** One take of a chat by one process, as its statements name it. */
export interface ClaimKey {
  readonly chatId: string
  /** Made anew for each take. */
  readonly claimId: string
}

/**
 * A chat is taken because it is wanted and due (a job), because a caller says so, or because a caller asks for it to be
 * completed; or for a summary: because one is wanted and due, or because a caller says so.
 */
export type TakeFor = 'job' | 'verb' | 'complete' | 'compact-job' | 'compact'

export interface TakeOptions extends ClaimKey {
  readonly ttlMs: number
  readonly reason: TakeFor
  /** Agents that this process has; a chat of another agent is left alone. */
  readonly agents: readonly string[]
  /** Told when the statement is about to go: the claim lives from then on at least. */
  readonly onSent?: () => void
  /** A chat that has cost so many processes is left alone; null = whatever it has cost. (E121) */
  readonly deathsBelow: number | null
}

/**
 * The only fence there is: the claim is this one and has not lapsed, by the database's clock. A claim that lapses while the statement
 * waits for the row has lapsed: whoever had the row meanwhile may have written to a chat that nobody held.
 */
const live = (db: Database) => `claimed_by = $claimId AND claimed_until > ${db.dialect.nowAtRow}`
const unclaimed = (db: Database) => `(claimed_until IS NULL OR claimed_until <= ${db.dialect.now})`

/** A wish for now: the earliest due time wins. Assigned before `wanted_seq` in every statement. */
export const wantNow = (db: Database) =>
  `wanted_at = CASE WHEN wanted_at IS NULL OR wanted_at > ${db.dialect.now} THEN ${db.dialect.now} ELSE wanted_at END, ` +
  'wanted_seq = wanted_seq + 1'

const notGivenUp = 'failure IS NULL AND (cancelled_turn IS NULL OR cancelled_turn <> turn)'

const anew =
  `rounds = CASE WHEN ${notGivenUp} THEN rounds ELSE 0 END, ` +
  `compactions = CASE WHEN ${notGivenUp} THEN compactions ELSE 0 END, ` +
  `ended_turn = CASE WHEN ${notGivenUp} THEN ended_turn ELSE NULL END, ` +
  'failure = NULL, cancelled_turn = NULL'

const deathsAnew = `CASE WHEN ${notGivenUp} THEN deaths ELSE ${deathsForgiven} END`

/**
 * A failed or cancelled turn is tried again: its rounds, summaries and deaths are counted anew, and it will end anew. Order
 * matters, MySQL assigns from left to right.
 */
export const tryAgain = `deaths = ${deathsAnew}, ${anew}`

/** Takes the chat if nobody holds it. True = this process owns it until the claim lapses. */
export async function takeChat(db: Database, options: TakeOptions): Promise<boolean> {
  const { now, nowPlus } = db.dialect
  const known = options.agents.map((_, at) => `$agent${at}`).join(', ')
  const rows = await db.write(
    `UPDATE ${db.tables.chats} SET ${deathsTaken(options.reason)}, last_death = NULL, ` +
      `claimed_by = $claimId, claimed_until = ${nowPlus('$ttlMs')}, claim_token = claim_token + 1, ` +
      `updated_at = ${now}, ${takenFor(db, options.reason)} WHERE id = $chatId AND ${unclaimed(db)} ` +
      (options.reason === 'job' ? `AND wanted_at <= ${now} ` : '') +
      (options.reason === 'compact-job' ? `AND compact_at <= ${now} ` : '') +
      (options.deathsBelow === null ? '' : `AND ${deathsSoFar} < $deathsBelow `) +
      `AND (agent IS NULL${known === '' ? '' : ` OR agent IN (${known})`})`,
    {
      chatId: options.chatId,
      claimId: options.claimId,
      ttlMs: options.ttlMs,
      ...(options.deathsBelow === null ? {} : { deathsBelow: options.deathsBelow }),
      ...Object.fromEntries(options.agents.map((name, at) => [`agent${at}`, name])),
    },
    undefined,
    options.onSent,
  )
  return rows === 1
}

/** A claim that lapsed was somebody's who died, or who was cut off for as long. Before the claim is assigned: MySQL reads it new after. */
function deathsTaken(reason: TakeFor): string {
  return reason === 'complete' ? `deaths = ${deathsAnew} + ${lapsed}` : `deaths = ${deathsSoFar}`
}

/** What a take counts. One for a summary leaves the turn, its wish and its attempts as they are. */
function takenFor(db: Database, reason: TakeFor): string {
  switch (reason) {
    case 'job':
    case 'verb':
      return 'wanted_queue = NULL, attempts = attempts + 1'
    case 'complete':
      return `wanted_queue = NULL, attempts = 1, ${anew}, ${wantNow(db)}`
    case 'compact-job':
      return 'compact_attempts = compact_attempts + 1'
    case 'compact':
      return 'parked = parked'
    default:
      return reason satisfies never
  }
}

/** What a process that did not get a chat can know of it. */
export interface Untaken {
  readonly agent: string | null
  readonly claimed: boolean
  /** How often it has been put off already. */
  readonly putOff: number
  /** How long it has been due, in ms; negative when it is due later, null when nobody wants it. */
  readonly dueForMs: number | null
  /** Whether a summary is wanted and due. */
  readonly compactDue: boolean
  /** The number of its last take. */
  readonly claimToken: number
  /** The processes that the chat has cost since its last committed move, one whose claim has lapsed included. */
  readonly deaths: number
}

/** Null: there is no such chat. */
export async function readUntaken(db: Database, chatId: string): Promise<Untaken | null> {
  const [raw] = await db.read(
    `SELECT agent, claim_token AS claimToken, put_off AS putOff, wanted_at AS wantedAt, ${db.dialect.now} AS databaseNow, ` +
      `CASE WHEN compact_at <= ${db.dialect.now} THEN 1 ELSE 0 END AS compactDue, ` +
      `CASE WHEN claimed_until > ${db.dialect.now} THEN deaths ELSE ${deathsSoFar} END AS deaths, ` +
      `CASE WHEN claimed_until > ${db.dialect.now} THEN 1 ELSE 0 END AS claimed FROM ${db.tables.chats} WHERE id = $chatId`,
    { chatId },
  )
  if (raw === undefined) return null
  const wantedAt = raw.wantedAt === null ? null : db.dialect.readTime(raw.wantedAt)
  return {
    agent: raw.agent as string | null,
    claimed: Number(raw.claimed) === 1,
    putOff: Number(raw.putOff),
    dueForMs: wantedAt === null ? null : db.dialect.readTime(raw.databaseNow).getTime() - wantedAt.getTime(),
    compactDue: Number(raw.compactDue) === 1,
    claimToken: Number(raw.claimToken),
    deaths: Number(raw.deaths),
  }
}

/**
 * Moves the chat's claim forward. False = it is no longer this one, or it has lapsed: a lapsed claim is never revived.
 * `onSent`: told when the statement is about to go.
 */
export async function renewChatClaim(
  db: Database,
  key: ClaimKey,
  ttlMs: number,
  onSent?: () => void,
): Promise<boolean> {
  const rows = await db.write(
    `UPDATE ${db.tables.chats} SET claimed_until = ${db.dialect.nowPlus('$ttlMs')} WHERE id = $chatId AND ${live(db)}`,
    { chatId: key.chatId, claimId: key.claimId, ttlMs },
    undefined,
    onSent,
  )
  return rows === 1
}

/** Moves a tool call's claim forward; an answered call has none, which is no loss. */
export async function renewToolCallClaim(db: Database, callId: string, claimId: string, ttlMs: number): Promise<void> {
  await db.write(
    `UPDATE ${db.tables.toolCalls} SET claimed_until = ${db.dialect.nowPlus('$ttlMs')} ` +
      `WHERE id = $callId AND result_id IS NULL AND ${live(db)}`,
    { callId, claimId, ttlMs },
  )
}

export interface FenceOptions {
  /** Positions to reserve for messages that the transaction inserts. */
  readonly messages?: number
  /** The messages are no progress of the turn: its attempts stay counted. */
  readonly aside?: boolean
  /** The transaction commits a move that stores no message. */
  readonly moved?: boolean
  /** The transaction commits a round: an answer with tool calls. */
  readonly round?: boolean
  /** Refuse when a cancel of this turn waits. */
  readonly unlessCancelled?: boolean
  /** Further assignments, constant text. */
  readonly also?: string
}

/**
 * The first statement of every transaction in which a run writes. It locks the chat row and proves the claim.
 * Returns false only when the turn was cancelled and the caller asked to be told.
 * @throws {ClaimLostError} when the claim is another's or has lapsed.
 * @throws {ChatNotFoundError} when the chat was deleted.
 */
export async function fence(
  db: Database,
  transaction: Transaction,
  key: ClaimKey,
  options: FenceOptions = {},
): Promise<boolean> {
  const messages = options.messages ?? 0
  const rows = await db.write(
    `UPDATE ${db.tables.chats} SET next_position = next_position + $messages` +
      (messages > 0 && !options.aside ? ', attempts = 0, put_off = 0' : '') +
      (messages > 0 || options.moved ? ', deaths = 0' : '') +
      (options.round ? ', rounds = rounds + 1' : '') +
      (options.also === undefined ? '' : `, ${options.also}`) +
      `, updated_at = ${db.dialect.now} WHERE id = $chatId AND ${live(db)}` +
      (options.unlessCancelled ? ' AND (cancel_turn IS NULL OR cancel_turn <> turn)' : ''),
    { chatId: key.chatId, claimId: key.claimId, messages },
    transaction,
  )
  if (rows === 1) return true
  const [raw] = await db.read(
    `SELECT CASE WHEN ${live(db)} THEN 1 ELSE 0 END AS live FROM ${db.tables.chats} WHERE id = $chatId`,
    { chatId: key.chatId, claimId: key.claimId },
    transaction,
  )
  if (raw === undefined) throw chatNotFound(key.chatId)
  if (Number(raw.live) === 1 && options.unlessCancelled) return false
  throw claimLost(key.chatId)
}

export function chatNotFound(chatId: string): ChatNotFoundError {
  // Whatever was passed as an id: no more of it than an id has.
  const shown = chatId.slice(0, 60)
  return new ChatNotFoundError(`There is no chat ${shown}: it was deleted, or the id is wrong.`, { chatId: shown })
}

export function claimLost(chatId: string): ClaimLostError {
  return new ClaimLostError(
    `This process no longer holds chat ${chatId}: its claim lapsed or was taken. Nothing was written.`,
    {
      chatId,
    },
  )
}

/** What becomes of the wish when a run ends, unless a new one was recorded after the run's last look. */
export type WishAfter =
  | { readonly kind: 'none' }
  /** The run gives the chat to another worker, which can start at once. */
  | { readonly kind: 'now'; readonly queue: Bell }
  /** The turn failed in a way that may pass: the count of attempts goes on. */
  | { readonly kind: 'later'; readonly delayMs: number }
  /** The chat waits, and is to be looked at again then: a task, or a question that expires. */
  | { readonly kind: 'look-again'; readonly delayMs: number }
  /** This process lacks something that another may have. */
  | { readonly kind: 'put-off'; readonly delayMs: number }

export interface Release extends ClaimKey {
  /** `wanted_seq` as read before the run's last look. */
  readonly seen: number
  readonly wish: WishAfter
  readonly parked: boolean
  readonly failure: Failure | null
  /** The agent was told that the turn ended. */
  readonly turnEnded: boolean
  /** The process fails, and could not finish the run: it counts as a death. */
  readonly died?: boolean
}

/** A failure that a later wish lifts ends nothing: the turn goes on. */
const endedTurn = ({ failure }: Release) =>
  failure === null ? 'turn' : 'CASE WHEN wanted_seq <> $seen THEN ended_turn ELSE turn END'

/** Gives the chat back. False = it was no longer held; nothing changed then. */
export async function releaseChat(db: Database, release: Release): Promise<boolean> {
  const { now, nowPlus } = db.dialect
  const { wish } = release
  const delayed = 'delayMs' in wish
  const due = {
    none: 'NULL',
    now: `CASE WHEN wanted_at IS NULL OR wanted_at > ${now} THEN ${now} ELSE wanted_at END`,
    later: nowPlus('$delayMs'),
    'look-again': nowPlus('$delayMs'),
    'put-off': nowPlus('$delayMs'),
  }[wish.kind]
  const rows = await db.write(
    `UPDATE ${db.tables.chats} SET claimed_by = NULL, claimed_until = NULL, parked = $parked, ` +
      (wish.kind === 'later' ? '' : 'attempts = 0, ') +
      (release.died ? 'deaths = deaths + 1, ' : '') +
      `put_off = ${wish.kind === 'put-off' ? 'put_off + 1' : '0'}, ` +
      `wanted_at = CASE WHEN wanted_seq <> $seen THEN wanted_at ELSE ${due} END, ` +
      // Whoever goes on with the turn has to carry its cancel out.
      (wish.kind === 'none' ? 'cancel_turn = CASE WHEN wanted_seq <> $seen THEN cancel_turn ELSE NULL END, ' : '') +
      // A wish that came after the last look deserves a try of its own.
      'failure = CASE WHEN wanted_seq <> $seen THEN NULL ELSE $failure END, ' +
      (release.turnEnded ? `ended_turn = ${endedTurn(release)}, ` : '') +
      `wanted_queue = $queue, updated_at = ${now} WHERE id = $chatId AND ${live(db)}`,
    {
      chatId: release.chatId,
      claimId: release.claimId,
      seen: release.seen,
      parked: release.parked ? 1 : 0,
      failure: release.failure === null ? null : JSON.stringify(release.failure),
      queue: wish.kind === 'now' ? wish.queue : null,
      ...(delayed ? { delayMs: wish.delayMs } : {}),
    },
  )
  return rows === 1
}

/** Of the chats named, those whose running turn was cancelled; one statement for all that a process runs. */
export async function cancelledAmong(db: Database, chatIds: readonly string[]): Promise<string[]> {
  if (chatIds.length === 0) return []
  const rows = await db.read(
    `SELECT id FROM ${db.tables.chats} WHERE id IN (${chatIds.map((_, at) => `$id${at}`).join(', ')}) AND cancel_turn = turn`,
    Object.fromEntries(chatIds.map((id, at) => [`id${at}`, id])),
  )
  return rows.map((row) => row.id as string)
}
