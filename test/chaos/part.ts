import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { Threadmill } from '../../src/index.ts'
import { readJournal } from '../../src/testing/crashes/journal.ts'
import { readSnapshot } from '../../src/testing/crashes/snapshot.ts'
import { startModelServer } from '../../src/testing/index.ts'
import { randomOf } from '../simulation/random.ts'
import { insidesOf } from '../support/insides.ts'
import { until } from '../support/until.ts'
import { agents } from './agents.ts'
import { Book } from './book.ts'

import type { ChatEvidence, Evidence, Violation } from './evidence.ts'
import { Fleet } from './fleet.ts'
import { Injector } from './inject.ts'
import type { Janitor } from './janitor.ts'
import { loseCommits } from './lost-commits.ts'
import { ChaosModel } from './model.ts'
import { People } from './people.ts'
import { type DatabaseName, planOf } from './plan.ts'
import { probe } from './probes.ts'
import { openScene, type Scene } from './scene.ts'
import { Strikes } from './strikes.ts'
import { Tally } from './tally.ts'
import { type Sight, Watch } from './watch.ts'

/** A chaos run on one database. */
export interface PartOptions {
  readonly database: DatabaseName
  /** How long faults are made, in ms. */
  readonly ms: number
  readonly seed: number
  readonly workers: number
  readonly chats: number
  readonly folder: string
  readonly janitor: Janitor
  readonly say: (line: string) => void
  readonly signal: AbortSignal
}

export interface PartResult {
  readonly evidence: Evidence
  readonly model: ChaosModel
  readonly tally: Tally
  /** What was seen before the rows were read: of claims, of processes, of chats that did not come to rest. */
  readonly violations: readonly Violation[]
}

export const claimTtlMs = 2_000
const lookMs = 150
/** Within which everything comes to rest once nothing goes wrong any more, in ms. */
const restWithinMs = 120_000

/** Starts servers, workers and people, has things go wrong, waits for rest, and reads what is left. */
export async function runPart(options: PartOptions): Promise<PartResult> {
  const { database, folder, janitor, seed } = options
  const closing: (() => Promise<unknown>)[] = []
  const opened = <T>(part: T, close: (part: T) => Promise<unknown>): T => {
    closing.push(() => close(part))
    return part
  }
  try {
    const scene = opened(await openScene(database, folder, janitor), (one) => one.close())
    const model = new ChaosModel(seed)
    const server = opened(await startModelServer({ respond: model.reply }), (one) => one.close())
    const common = {
      ...{ claimTtlMs, sweepEveryMs: 400, openaiBaseUrl: server.url, openaiApiKey: 'none', model: 'people', agents },
    }
    const observer = await Threadmill.connect({ ...common, ...scene.direct, migrate: true })
    opened(observer, (one) => one.close())
    const mill = opened(await Threadmill.connect({ ...common, ...scene.options }), (one) => one.close())
    return await play(options, {
      scene,
      model,
      observer,
      mill,
      requests: () => server.requests,
      url: server.url,
      closing,
    })
  } finally {
    for (const close of closing.reverse()) await close().catch((error) => options.say(`could not close: ${error}`))
  }
}

interface Parts {
  readonly scene: Scene
  readonly model: ChaosModel
  /** Connected past the proxies. */
  readonly observer: Threadmill
  /** What people use. */
  readonly mill: Threadmill
  readonly requests: () => Evidence['requests']
  readonly url: string
  readonly closing: (() => Promise<unknown>)[]
}

async function play(options: PartOptions, parts: Parts): Promise<PartResult> {
  const { database, ms, seed, janitor, folder, say, signal } = options
  const { scene, model, observer, mill, closing } = parts
  const ledger = join(folder, 'ledger')
  const tally = new Tally()
  const book = new Book()
  const watch = new Watch(insidesOf(observer).db)
  const sights = new Map<string, Sight>()
  const random = randomOf(seed, 99)
  const people = new People({ mill, book, chats: options.chats, sightOf: (id) => sights.get(id), random })
  let isCalm = false
  const fleet: Fleet = new Fleet({
    workers: options.workers,
    janitor,
    setupOf: (name) => ({
      name,
      ledger,
      options: { claimTtlMs, sweepEveryMs: 400, openaiBaseUrl: parts.url, openaiApiKey: 'none', ...scene.options },
    }),
    onTrapped: (worker, report) => strikes.trapped(worker, report),
    onDied(worker) {
      if (isCalm) return
      tally.count('kill')
      tally.deaths.push({ worker: worker.name, at: worker.to ?? 0, held: new Map(worker.held) })
    },
  })
  const strikes: Strikes = new Strikes({
    ...{ fleet, tally, ttlMs: claimTtlMs, random },
    async haveLapsed(held) {
      const seen = await watch.look([...held.keys()])
      return seen !== null && [...held].every(([id, token]) => seen.get(id)?.token !== token || !seen.get(id)?.isLive)
    },
    async claimsOf(texts) {
      const seen = texts.length === 0 ? null : await watch.look(texts)
      return new Map([...(seen ?? [])].filter(([, { isLive }]) => isLive).map(([id, { token }]) => [id, token]))
    },
    interfere(texts) {
      for (const id of new Set(texts)) void people.interfere(id)
    },
  })
  closing.push(() => fleet.close())
  await fleet.fill()
  await until('workers are up', () => fleet.working.length === options.workers, 60_000)

  const looking = new AbortController()
  const looks = look(watch, () => book.chatIds.slice(-3 * options.chats), sights, looking.signal)
  if (database === 'mysql') {
    loseCommits(mill.sequelize, random, () => {
      if (!isCalm) tally.count('lost-commit')
      return !isCalm
    })
  }
  people.start()
  const injector = new Injector({ tally, fleet, strikes, redis: scene.redis, database: scene.database })
  say(`${database}: ${options.workers} workers, ${options.chats} chats at a time, for ${Math.round(ms / 1_000)} s`)
  await injector.play(planOf({ seed, database, ms }), signal)
  isCalm = true
  model.fails = false
  await people.stop()
  looking.abort()
  await looks
  say(`${database}: nothing goes wrong any more; ${book.chatIds.length} chats, ${parts.requests().length} requests`)

  const restless = await rest(watch, people, book.chatIds)
  const probed =
    restless.length > 0 ? [] : await probe({ mill, fleet, watch, requests: parts.requests, ttlMs: claimTtlMs })
  await fleet.close()
  const chats = await readChats(observer, book.chatIds)
  const chatIds = new Set(book.chatIds)
  const evidence: Evidence = {
    ...{ database, chats, book, requests: parts.requests(), lives: fleet.lives, takes: fleet.takes },
    ...{
      ledger: (await readJournal(ledger)).filter(({ chatId }) => chatIds.has(chatId)),
      stalls: fleet.stalls,
      silences: watch.silences,
      tally,
    },
  }
  const violations: Violation[] = [
    ...probed,
    ...restless.map(
      (chatId): Violation => ({ rule: 'message', chatId, what: `It is not at rest after ${restWithinMs} ms.` }),
    ),
    ...watch.violations,
    ...fleet.broken.map((what): Violation => ({ rule: 'process', chatId: null, what })),
  ]
  return { evidence, model, tally, violations }
}

/** Keeps the sights of chats up to date until it is told to stop. */
async function look(
  watch: Watch,
  chatIds: () => readonly string[],
  sights: Map<string, Sight>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    for (const [id, sight] of (await watch.look(chatIds())) ?? []) sights.set(id, sight)
    await wait(lookMs)
  }
}

/** Decides whatever waits for people, and waits until nothing moves any more. Returns the chats that still do at the limit. */
async function rest(watch: Watch, people: People, chatIds: readonly string[]): Promise<string[]> {
  const begun = performance.now()
  let left = [...chatIds]
  let quiet = 0
  while (quiet < 3 && performance.now() - begun < restWithinMs) {
    const sights = await watch.look(left)
    const restless: string[] = []
    for (const sight of sights?.values() ?? []) {
      const { id, claimedBy, wanted, pending } = sight
      if (claimedBy !== null || wanted !== 'no' || pending.length > 0) restless.push(id)
      for (const callId of pending) await people.decide(id, callId, true)
      // It would be run in its time; nobody wants to wait for that.
      if (wanted === 'later') await people.want(id)
    }
    quiet = sights !== null && restless.length === 0 ? quiet + 1 : 0
    left = quiet === 0 && restless.length > 0 ? restless : [...chatIds]
    await wait(lookMs)
  }
  return quiet < 3 ? left : []
}

async function readChats(mill: Threadmill, chatIds: readonly string[]): Promise<ChatEvidence[]> {
  const evidence: ChatEvidence[] = []
  for (const id of chatIds) {
    const chat = await mill.chats.find(id)
    const { chats, usages } = await readSnapshot(mill, chat)
    const [state] = chats
    if (state !== undefined) evidence.push({ ...state, usages, queue: await chat.queuedMessages() })
  }
  return evidence
}
