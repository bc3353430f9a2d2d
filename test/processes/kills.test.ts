import { setTimeout as wait } from 'node:timers/promises'
import { expect } from 'chai'
import type { Chat } from '../../src/index.ts'
import type { ModelServer } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { agents } from './apps/load.ts'
import {
  allAtRest,
  askAll,
  expectAnswered,
  loadModel,
  makeChats,
  overlapsOf,
  questionOf,
  report,
} from './support/load.ts'
import { kill, useWorkers, type WorkerProcess } from './support/workers.ts'

const ROUNDS = 3
const WORKERS = 4
const BOUND_MS = 180_000
const KILL_EVERY_MS = 1_000

interface Plan {
  readonly chats: number
  /** Asked before the first kill; the others come in equal parts, one after each kill. */
  readonly atOnce: number
  readonly kills: number
  readonly holderKills: number
}

const small: Plan = { chats: 40, atOnce: 10, kills: 10, holderKills: 5 }
const full: Plan = { chats: 200, atOnce: 40, kills: 44, holderKills: 20 }

interface Named {
  readonly name: string
  readonly process: WorkerProcess
}

const secondsSince = (begun: number) => ((performance.now() - begun) / 1_000).toFixed(1)

function requestsOpenBy(name: string, model: ModelServer) {
  return model.requests.filter((request) => request.model === name && request.ended === null)
}

/** Kills a worker. True = chats that it was asking the model for were still its own when it was dead. */
async function killHolder(worker: Named | undefined, model: ModelServer, chats: readonly Chat[]): Promise<boolean> {
  if (worker === undefined) return false
  const open = requestsOpenBy(worker.name, model)
  await kill(worker.process)
  const held = await Promise.all(
    open.map(async (request) => chats[Number(questionOf(request).replace('chat ', ''))]?.running()),
  )
  return held.includes(true)
}

onEachDatabase('Workers that are killed one after the other', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 2_000 })
  const workers = useWorkers()

  const lose = async (plan: Plan) => {
    const model = await bench.script(loadModel({ rounds: ROUNDS, latencyMs: 150 }))
    const mill = await bench.connect({ agents })
    const chats = await makeChats(mill, plan.chats)
    let started = 0
    // Each asks for a model of its own, so that the model's log tells whose a request is.
    const start = async (): Promise<Named> => {
      const name = `worker-${++started}`
      const options = { ...bench.options(), model: name, counts: { complete: 10, runTools: 0 } }
      return { name, process: await workers.start({ app: 'load', options }) }
    }
    const begun = performance.now()
    // The oldest first.
    const pool = Array.from({ length: WORKERS }, start)
    await Promise.all(pool)
    await askAll(chats, 0, plan.atOnce)
    const part = Math.ceil((plan.chats - plan.atOnce) / (plan.kills - 4))
    let holderKills = 0
    for (let kills = 0; kills < plan.kills; kills++) {
      // On a slow machine replacements take longer to come up than kills to come.
      const up = await Promise.all(pool.slice(0, WORKERS - 1))
      const pause = wait(KILL_EVERY_MS)
      await askAll(chats, plan.atOnce + kills * part, part)
      await pause
      const victim = Math.max(
        0,
        up.findIndex(({ name }) => requestsOpenBy(name, model).length > 0),
      )
      if (await killHolder(await pool[victim], model, chats)) holderKills++
      pool.splice(victim, 1)
      pool.push(start())
    }
    const killed = secondsSince(begun)
    await allAtRest(chats, BOUND_MS - (performance.now() - begun))
    report(`${plan.kills} kills in ${killed} s, ${holderKills} of them of a claim holder`)
    report(`${plan.chats} turns and ${model.requests.length} requests in ${secondsSince(begun)} s`)
    await Promise.all(pool)
    expect(holderKills).to.be.at.least(plan.holderKills)
    expect(overlapsOf(model.requests)).to.eql([])
    await expectAnswered(mill, chats, ROUNDS)
  }

  it('lose no turn and double none: 40 turns, 10 kills', () => lose(small)).timeout(BOUND_MS + 60_000)

  if (process.env.THREADMILL_FULL === '1' && kind.name === 'MariaDB') {
    it('lose no turn and double none: 200 turns, 44 kills', () => lose(full)).timeout(BOUND_MS + 60_000)
  } else {
    it('lose no turn and double none: 200 turns, 44 kills (left out: MariaDB and THREADMILL_FULL=1 only)')
  }
})
