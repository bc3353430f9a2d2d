import type { Cluster, Redis } from 'ioredis'
import { UnreachableError } from '../errors.ts'
import { entryFields } from './entry.ts'
import type { LiveEvent } from './event.ts'
import { streamKey } from './keys.ts'
import { entryNumbers } from './numbers.ts'
import { isRunEnd } from './run-end.ts'
import { addWaiting, isDelta, joinWaiting, lengthOf, type WaitingEvent } from './waiting.ts'

/** The two timer functions that a publisher needs, so that tests and simulators can bring their own. */
export interface EventTimers {
  setTimeout(callback: () => void, ms: number): unknown
  clearTimeout(timer: unknown): void
}

export interface EventPublisherOptions {
  /** What the keys begin with. */
  readonly prefix: string
  /** How long a delta waits for more of its message, in ms; the first one never waits. Default: 40. */
  readonly coalesceMs?: number | undefined
  /** How long any other event waits for those beside it, in ms: a move makes several. 0 = not at all. Default: 5. */
  readonly gatherMs?: number | undefined
  /** About how many entries a chat's stream keeps. Default: 5000. */
  readonly maxLength?: number | undefined
  /** How long a stream outlives its last entry, in ms. Default: 1 hour, or 10 minutes when that is the end of a run. */
  readonly expireMs?: { readonly running: number; readonly ended: number } | undefined
  /** Most entries of one chat that wait while Redis is slow or away; then the oldest deltas go. Default: `maxLength`. */
  readonly maxWaiting?: number | undefined
  /** How long a `flush`, `forget` or `close` waits for Redis, in ms. Default: 1000. */
  readonly giveUpMs?: number | undefined
  /** Told why events of a chat were dropped or not sent yet. What it throws is ignored. */
  readonly onError: (error: Error, chatId: string) => void
  readonly timers?: EventTimers | undefined
}

/** Sends live events, best effort: nothing here throws or rejects, and what can't be sent is dropped. */
export interface EventPublisher {
  /** Takes an event and returns at once. After `close` it does nothing. */
  publish(chatId: string, claimToken: number, event: LiveEvent): void
  /** Resolves when everything published so far for the chat was sent or dropped, or after `giveUpMs`. */
  flush(chatId: string): Promise<void>
  /** Drops what waits for a chat that is gone, and its stream; waits for Redis as `flush` does. */
  forget(chatId: string): Promise<void>
  /** Flushes every chat, then drops what is left. Safe to call again. The connection stays the caller's. */
  close(): Promise<void>
}

/** What is under way for one chat; kept only while something is. */
interface Lane {
  readonly chatId: string
  waiting: WaitingEvent[]
  /** Called when what waits now was sent or dropped. */
  settled: (() => void)[]
  /** True when what waits should go as soon as nothing else of the chat is being sent. */
  due: boolean
  timer: { readonly handle: unknown; readonly ms: number } | null
  sending: Promise<void> | null
  /** True from the first dropped entry until the next send ends, so that it is reported once. */
  dropping: boolean
}

const EXPIRE_MS = { running: 3_600_000, ended: 600_000 }
/** A delta of so many characters waits no longer: 1 KiB of plain text. */
const ENOUGH = 1_024

function notTaken(chatId: string, problem: string): UnreachableError {
  return new UnreachableError(`${problem}: check the connection. Stored messages are not affected.`, { chatId })
}

/** Makes a publisher on a connection that should fail at once, not queue, while Redis is away. */
export function eventPublisher(redis: Redis | Cluster, options: EventPublisherOptions): EventPublisher {
  const { prefix, coalesceMs = 40, maxLength = 5000, expireMs = EXPIRE_MS, giveUpMs = 1_000, onError } = options
  const { gatherMs = 5, maxWaiting = maxLength, timers = globalThis } = options
  const lanes = new Map<string, Lane>()
  const numbers = entryNumbers()
  let closing: Promise<void> | undefined

  function report(error: unknown, chatId: string): void {
    try {
      onError(error instanceof Error ? error : new Error(String(error)), chatId)
    } catch {
      // Whoever listens must not be able to end a run.
    }
  }

  function laneOf(chatId: string): Lane {
    const known = lanes.get(chatId)
    if (known) return known
    const lane: Lane = { chatId, waiting: [], settled: [], due: false, timer: null, sending: null, dropping: false }
    lanes.set(chatId, lane)
    return lane
  }

  function stopTimer(lane: Lane): void {
    if (lane.timer) timers.clearTimeout(lane.timer.handle)
    lane.timer = null
  }

  function sendIn(ms: number, lane: Lane): void {
    if (ms === 0) {
      sendNow(lane)
      return
    }
    if (lane.due || (lane.timer && lane.timer.ms <= ms)) return
    stopTimer(lane)
    const handle = timers.setTimeout(() => {
      lane.timer = null
      sendNow(lane)
    }, ms)
    lane.timer = { handle, ms }
  }

  function sendNow(lane: Lane): void {
    stopTimer(lane)
    lane.due = true
    if (!lane.sending) void drain(lane)
  }

  /** Sends batch after batch, one at a time, so that the order holds. */
  async function drain(lane: Lane): Promise<void> {
    while (lane.due && lane.waiting.length > 0) {
      const { waiting, settled } = lane
      Object.assign(lane, { waiting: [], settled: [], due: false })
      lane.sending = send(lane.chatId, waiting)
      await lane.sending
      lane.sending = null
      lane.dropping = false
      for (const done of settled) done()
    }
    if (lane.waiting.length === 0) lanes.delete(lane.chatId)
  }

  async function send(chatId: string, batch: readonly WaitingEvent[]): Promise<void> {
    try {
      const key = streamKey(prefix, chatId)
      const pipeline = redis.pipeline()
      for (const waiting of batch) {
        const fields = fieldsOf(chatId, waiting)
        if (fields) pipeline.xadd(key, 'MAXLEN', '~', maxLength, '*', ...fields)
      }
      const last = batch.at(-1)
      if (last !== undefined && isRunEnd(last.event)) pipeline.pexpire(key, expireMs.ended)
      else if (last?.claimToken === 0 || numbers.renews(chatId)) pipeline.pexpire(key, expireMs.running)
      const results = (await pipeline.exec()) ?? []
      const failed = results.find(([error]) => error !== null)
      if (failed) report(failed[0], chatId)
    } catch (error) {
      report(error, chatId)
    }
  }

  function fieldsOf(chatId: string, { claimToken, number, event }: WaitingEvent): string[] | null {
    try {
      return entryFields(claimToken, number, event)
    } catch (error) {
      report(error, chatId)
      return null
    }
  }

  function publish(chatId: string, claimToken: number, event: LiveEvent): void {
    if (closing) return
    const lane = laneOf(chatId)
    const { waiting } = lane
    const joined = joinWaiting(waiting, claimToken, event)
    const number = joined ? null : numbers.next(chatId, claimToken)
    const isFirst = isDelta(event) && numbers.startsDeltas(chatId, event)
    const dropped = joined ? 0 : addWaiting(waiting, { claimToken, number, event }, maxWaiting)
    if (dropped > 0 && !lane.dropping) {
      lane.dropping = true
      report(notTaken(chatId, `More than ${maxWaiting} live events wait for Redis, so the oldest are dropped`), chatId)
    }
    if (isFirst || lengthOf(waiting.at(-1)) >= ENOUGH) sendNow(lane)
    else sendIn(isDelta(event) ? coalesceMs : gatherMs, lane)
  }

  function flush(chatId: string): Promise<void> {
    const lane = lanes.get(chatId)
    if (!lane) return Promise.resolve()
    if (lane.waiting.length === 0) return inTime(lane.sending ?? Promise.resolve(), chatId)
    const settled = new Promise<void>((done) => lane.settled.push(done))
    sendNow(lane)
    return inTime(settled, chatId)
  }

  async function forget(chatId: string): Promise<void> {
    const lane = lanes.get(chatId)
    if (lane) lane.waiting = []
    const remove = async () => {
      // Behind what is on its way, which would make the stream anew.
      await lane?.sending
      await redis.del(streamKey(prefix, chatId)).catch((error: unknown) => report(error, chatId))
    }
    await inTime(remove(), chatId)
  }

  function inTime(settled: Promise<void>, chatId: string): Promise<void> {
    return new Promise((done) => {
      const timer = timers.setTimeout(() => {
        report(notTaken(chatId, `Redis did not take live events within ${giveUpMs} ms`), chatId)
        done()
      }, giveUpMs)
      void settled.then(() => {
        timers.clearTimeout(timer)
        done()
      })
    })
  }

  async function closeAll(): Promise<void> {
    await Promise.all([...lanes.keys()].map(flush))
    for (const lane of lanes.values()) {
      stopTimer(lane)
      lane.waiting = []
    }
    lanes.clear()
  }

  function close(): Promise<void> {
    closing ??= closeAll()
    return closing
  }

  return { publish, flush, forget, close }
}
