import type { Chat, Threadmill } from '../../src/index.ts'
import type { LoggedRequest } from '../../src/testing/index.ts'
import { until } from '../support/until.ts'
import type { Violation } from './evidence.ts'
import type { Fleet } from './fleet.ts'
import { longQuestion, questionOf } from './model.ts'
import type { Watch } from './watch.ts'

export interface ProbeOptions {
  readonly mill: Threadmill
  readonly fleet: Fleet
  readonly watch: Watch
  readonly requests: () => readonly LoggedRequest[]
  readonly ttlMs: number
}

/** What is stopped stops within this time, in ms; of itself it would take far longer. */
const stopsWithinMs = 9_000
const beginsWithinMs = 20_000
const ringsWithinMs = 4_000
const asks = 4

/**
 * What only shows where nothing goes wrong: whatever is stopped stops soon, and a chat that is wanted is begun by a ring, not by a
 * sweep. The chats of probes have no part in the other checks.
 */
export async function probe(options: ProbeOptions): Promise<Violation[]> {
  const found = await Promise.all([cancelAnswer(options), cancelTool(options), freezeAnswer(options), ring(options)])
  return found.flat()
}

async function begin({ mill }: ProbeOptions, question: string): Promise<Chat> {
  const chat = await mill.chats.create({ agent: 'inline' })
  await chat.askLater(question, { enqueue: true })
  return chat
}

/** Waits for something; a violation where it does not come. */
async function within(
  what: Omit<Violation, 'what'>,
  told: string,
  ms: number,
  seen: () => unknown,
): Promise<Violation[]> {
  try {
    await until(told, async () => (await seen()) !== undefined, ms)
    return []
  } catch {
    return [{ ...what, what: `In peace: ${told} not within ${ms} ms.` }]
  }
}

const requestOf = ({ requests }: ProbeOptions, { id }: Chat): LoggedRequest | undefined =>
  requests().find((request) => request.chat === id)

async function cancelAnswer(options: ProbeOptions): Promise<Violation[]> {
  const chat = await begin(options, longQuestion('a'))
  const about = { rule: 'stop', chatId: chat.id } as const
  const began = await within(about, 'the model was asked', beginsWithinMs, () => requestOf(options, chat))
  if (began.length > 0) return began
  await chat.cancel()
  return within(about, 'a cancelled answer ended', stopsWithinMs, () => atRest(options, chat))
}

async function cancelTool(options: ProbeOptions): Promise<Violation[]> {
  const chat = await begin(options, questionOf('a', [['long']]))
  const about = { rule: 'stop', chatId: chat.id } as const
  const calls = async () => (await chat.messages()).flatMap(({ toolCalls }) => toolCalls)
  const began = await within(about, 'the tool was begun', beginsWithinMs, async () =>
    (await calls()).find(({ startedAt }) => startedAt !== null),
  )
  if (began.length > 0) return began
  await chat.cancel()
  return within(about, 'a cancelled tool ended', stopsWithinMs, () => atRest(options, chat))
}

/** A process that lost its claim does not listen to its model any longer. */
async function freezeAnswer(options: ProbeOptions): Promise<Violation[]> {
  const { fleet, ttlMs } = options
  const chat = await begin(options, longQuestion('b'))
  const about = { rule: 'stop', chatId: chat.id } as const
  const began = await within(about, 'the model was asked', beginsWithinMs, () => requestOf(options, chat))
  const first = requestOf(options, chat)
  const holder = fleet.working.find(({ held }) => held.has(chat.id))
  if (first === undefined || holder === undefined) return began
  holder.signal('SIGSTOP')
  await until('its claim has lapsed', async () => (await sightOf(options, chat))?.isLive === false, 2 * ttlMs).catch(
    () => {},
  )
  holder.signal('SIGCONT')
  const stopped = await within(
    about,
    'the answer for a lost claim ended',
    stopsWithinMs,
    () => first.ended ?? undefined,
  )
  await chat.cancel()
  return [...stopped, ...(await within(about, 'a cancelled answer ended', stopsWithinMs, () => atRest(options, chat)))]
}

/** A sweep may come first, and the ring behind it finds nothing to do; but it comes. */
async function ring(options: ProbeOptions): Promise<Violation[]> {
  const { fleet } = options
  const chat = await options.mill.chats.create({ agent: 'inline' })
  const about = { rule: 'ring', chatId: chat.id } as const
  const rings = () => fleet.jobs.filter(({ chatId, job }) => chatId === chat.id && job === 'ring').length
  let heard = 0
  for (let asked = 0; asked < asks; asked++) {
    const before = rings()
    await chat.askLater(questionOf(`c${asked}`, []), { enqueue: true })
    const answered = await within(about, 'a question was answered', beginsWithinMs, () => atRest(options, chat))
    if (answered.length > 0) return answered
    if (await until('its ring was heard', () => rings() > before, ringsWithinMs).catch(() => false)) heard++
  }
  if (heard > asks / 2) return []
  return [{ ...about, what: `In peace: of ${asks} rings for an idle chat ${heard} were heard.` }]
}

async function sightOf({ watch }: ProbeOptions, { id }: Chat) {
  return (await watch.look([id]))?.get(id)
}

async function atRest(options: ProbeOptions, chat: Chat): Promise<true | undefined> {
  const sight = await sightOf(options, chat)
  return sight !== undefined && sight.claimedBy === null && sight.wanted === 'no' ? true : undefined
}
