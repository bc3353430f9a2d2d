import { Redis, type RedisOptions } from 'ioredis'
import type { ChatEvent, LiveEvent } from '../../src/events/event.ts'
import { streamKey } from '../../src/events/keys.ts'
import type { EventTimers } from '../../src/events/publisher.ts'

export const prefix = 'test'

export const text = (part: string, messageId = 'm1'): LiveEvent => ({ type: 'text.delta', messageId, text: part })
export const thinking = (part: string, messageId = 'm1'): LiveEvent => ({
  type: 'thinking.delta',
  messageId,
  text: part,
})
export const cancelled: LiveEvent = { type: 'run.cancelled' }
export const finished = (whole: string, messageId = 'm1'): LiveEvent => ({
  type: 'message.finished',
  messageId,
  text: whole,
  finishReason: 'stop',
})
export const begun = (messageId = 'm1'): LiveEvent => ({ type: 'message.started', messageId, model: 'test' })
export const runFinished = (messageId = 'm1'): LiveEvent => ({ type: 'run.finished', messageId })
export const started = (turn: number): LiveEvent => ({ type: 'run.started', turn })

const opened: Redis[] = []

/** A client that `closeClients` ends. It fails at once while Redis is away, unless the options say otherwise. */
export function clientOf(url: string, options: RedisOptions = {}): Redis {
  const client = new Redis(url, {
    maxRetriesPerRequest: 1,
    enableOfflineQueue: false,
    retryStrategy: () => 20,
    ...options,
  })
  client.on('error', () => {})
  opened.push(client)
  return client
}

/** A client as readers get it: it waits for Redis. */
export const readerClientOf = (url: string, options: RedisOptions = {}): Redis =>
  clientOf(url, { maxRetriesPerRequest: null, enableOfflineQueue: true, ...options })

export function closeClients(): void {
  for (const client of opened.splice(0)) client.disconnect()
}

/** Resolves when the condition holds; a test that waits in vain ends by mocha's own limit. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((done) => setTimeout(done, 5))
}

export const whenReady = (client: Redis): Promise<void> => until(() => client.status === 'ready')

/** What a chat's stream holds: claim token and event, oldest first. */
export async function stored(client: Redis, chatId: string): Promise<[token: number, event: LiveEvent][]> {
  const entries = await client.xrange(streamKey(prefix, chatId), '-', '+')
  return entries.map(([, fields]) => [Number(fields[1]), JSON.parse(fields.at(-1) ?? '')])
}

/** Reads on until `enough` says so, and ends the reader. */
export async function readUntil(
  reader: AsyncIterable<ChatEvent>,
  enough: (event: ChatEvent, all: ChatEvent[]) => boolean,
): Promise<ChatEvent[]> {
  const events: ChatEvent[] = []
  for await (const event of reader) {
    events.push(event)
    if (enough(event, events)) break
  }
  return events
}

export const readSome = (reader: AsyncIterable<ChatEvent>, count: number): Promise<ChatEvent[]> =>
  readUntil(reader, (_, all) => all.length === count)

/** The text of the deltas among events. */
export const textOf = (events: readonly LiveEvent[]): string =>
  events.map((event) => (event.type === 'text.delta' ? event.text : '')).join('')

/** Timers that fire only when a test says so. */
export function manualTimers(): EventTimers & { pending: () => number[]; fire: (ms: number) => void } {
  const waiting = new Map<number, { callback: () => void; ms: number }>()
  let made = 0
  return {
    setTimeout(callback, ms) {
      waiting.set(++made, { callback, ms })
      return made
    },
    clearTimeout: (timer) => void waiting.delete(timer as number),
    /** The times of what is waiting, in ms. */
    pending: () => [...waiting.values()].map(({ ms }) => ms),
    fire(ms) {
      for (const [id, timer] of [...waiting]) {
        if (timer.ms !== ms) continue
        waiting.delete(id)
        timer.callback()
      }
    },
  }
}
