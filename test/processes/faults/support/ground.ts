import { expect } from 'chai'
import type { Chat, ConnectOptions, Threadmill } from '../../../../src/index.ts'
import type { ModelServer, Respond } from '../../../../src/testing/index.ts'
import type { DatabaseKind } from '../../../support/databases.ts'
import { type Bench, useBench } from '../../../support/mills.ts'
import { until } from '../../../support/until.ts'
import { agents } from '../../apps/clerk.ts'
import { type Desk, useDesk } from '../../support/desk.ts'
import { type Jobs, useJobs } from '../../support/jobs.ts'
import { expectWhole, isAtRest, rowOf } from '../../support/rows.ts'
import { type DeathAt, useWorkers, type WorkerProcess } from '../../support/workers.ts'
import { type Links, useLinks } from './links.ts'

/** How long a claim lives here, in ms. */
export const TTL_MS = 2_500
/** How long anything may take on a busy machine, in ms. */
export const WAIT_MS = 40_000

/** What a worker does to itself, and where. */
export interface WorkerEnd {
  readonly dieAt?: DeathAt
  readonly freezeAt?: DeathAt
}

/** What a case is played on: real servers, a web process (the test's own), and workers that faults befall. */
export interface Ground {
  readonly kind: DatabaseKind
  readonly bench: Bench
  readonly jobs: Jobs
  readonly desk: Desk
  /** The web process. It reaches the servers directly, so that a fault of the network is the runner's alone. */
  readonly mill: Threadmill
  readonly links: Links
  /** The worker that was started last as `runner`. */
  readonly runner: WorkerProcess
  model(respond: Respond): Promise<ModelServer>
  chat(agent?: string): Promise<Chat>
  /** Starts the worker that the fault befalls, over links. */
  startRunner(end?: WorkerEnd): Promise<WorkerProcess>
  /** Starts another one, which reaches the servers directly, unless there is one. */
  startSpare(): Promise<WorkerProcess>
  /** The chat that the fault is about: the one made last. */
  readonly struck: Chat
}

/** Parts for each test of a suite; the runner's claims live for `claimTtlMs`, by default as long as all others'. */
export function useGround(kind: DatabaseKind, defaults: ConnectOptions = {}): (claimTtlMs?: number) => Promise<Ground> {
  const bench = useBench(kind, { claimTtlMs: TTL_MS, ...defaults })
  const workers = useWorkers()
  const desk = useDesk()
  const jobs = useJobs(() => bench.redis.url)
  const links = useLinks(bench)
  return async (claimTtlMs = TTL_MS) => {
    const own = await links()
    const mills: Threadmill[] = []
    const mill = () => mills[0] ?? missing('web process: script the model first')
    const start = (options: ConnectOptions, end: WorkerEnd = {}) =>
      workers.start({ app: 'clerk', options: { ...bench.options(), ...options }, desk: desk().url, ...end })
    let runner: WorkerProcess | undefined
    let spare: Promise<WorkerProcess> | undefined
    let struck: Chat | undefined
    return {
      kind,
      bench,
      links: own,
      get jobs() {
        return jobs()
      },
      get desk() {
        return desk()
      },
      get mill() {
        return mill()
      },
      get runner() {
        return runner ?? missing('runner')
      },
      get struck() {
        return struck ?? missing('chat')
      },
      async model(respond) {
        const model = await bench.script(respond)
        const web = await bench.connect({ agents })
        mills.push(web)
        // What a test that failed has left behind would be taken up by the workers of this one.
        await web.models.Chat.destroy({ where: {} })
        return model
      },
      async chat(agent) {
        struck = await mill().chats.create(agent === undefined ? {} : { agent })
        return struck
      },
      async startRunner(end) {
        runner = await start({ ...own.options, claimTtlMs }, end)
        return runner
      },
      startSpare() {
        spare ??= start({})
        return spare
      },
    }
  }
}

function missing(what: string): never {
  throw new Error(`There is no ${what}`)
}

/** Waits until the chat's claim has lapsed, or somebody else has taken the chat or given it back. */
export async function claimLapsed({ mill }: Ground, chat: Chat, claimToken: number): Promise<void> {
  await until(
    'the claim has lapsed',
    async () => (await rowOf(mill, chat)).claimToken > claimToken || !(await chat.running()),
    WAIT_MS,
  )
}

/** Waits until the chat is answered and given back, and checks that its rows are whole. */
export async function expectRest({ mill }: Ground, chat: Chat): Promise<void> {
  await until('the chat is answered and given back', () => isAtRest(chat), WAIT_MS)
  await expectWhole(mill, chat)
}

/** Checks that an instant came within a time of another, both in ms since 1970. */
export function expectWithin(what: string, limitMs: number, from: number, at: number | undefined): void {
  expect((at ?? Number.NaN) - from, `${what}, in ms`).to.be.lessThan(limitMs)
}
