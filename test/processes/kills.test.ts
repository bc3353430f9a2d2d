import { setTimeout as wait } from 'node:timers/promises'
import { expect } from 'chai'
import type { Threadmill } from '../../src/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { itOnRealRedis } from '../support/real-redis.ts'
import { agents } from './apps/load.ts'
import { allAtRest, askAll, expectAnswered, loadModel, makeChats, overlapsOf, report } from './support/load.ts'
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

// The chaos run kills hundreds, among other things; this one keeps to kills.
const plan: Plan = { chats: 40, atOnce: 10, kills: 10, holderKills: 5 }

interface Named {
  readonly name: string
  readonly process: WorkerProcess
}

const secondsSince = (begun: number) => ((performance.now() - begun) / 1_000).toFixed(1)

/** How many chats a worker holds, of those for which it has asked the model under its claim. */
async function chatsHeldBy(mill: Threadmill, { name }: Named): Promise<number> {
  const asked = await mill.models.Usage.findAll({ where: { model: name } })
  const chats = await mill.models.Chat.findAll({ where: { id: [...new Set(asked.map(({ chatId }) => chatId))] } })
  const now = Date.now()
  return chats.filter(({ id, claimToken, claimedUntil }) => {
    const own = asked.some((usage) => usage.chatId === id && usage.claimToken === claimToken)
    return own && claimedUntil !== null && claimedUntil.getTime() > now
  }).length
}

onEachDatabase('Workers that are killed one after the other', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 2_000 })
  const workers = useWorkers()

  const lose = async () => {
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
      const held = await Promise.all(up.map((worker) => chatsHeldBy(mill, worker)))
      // The oldest that holds a chat, else the oldest.
      const victim = up.find((_, at) => (held[at] ?? 0) > 0) ?? up[0]
      if (victim === undefined) throw new Error('No worker is up')
      pool.splice(up.indexOf(victim), 1)
      await kill(victim.process)
      if ((await chatsHeldBy(mill, victim)) > 0) holderKills++
      pool.push(start())
    }
    const killed = secondsSince(begun)
    // A slow machine may need all of it for the kills alone.
    await allAtRest(chats, Math.max(BOUND_MS - (performance.now() - begun), 90_000))
    report(`${plan.kills} kills in ${killed} s, ${holderKills} of them of a claim holder`)
    report(`${plan.chats} turns and ${model.requests.length} requests in ${secondsSince(begun)} s`)
    await Promise.all(pool)
    expect(holderKills).to.be.at.least(plan.holderKills)
    expect(overlapsOf(model.requests)).to.eql([])
    await expectAnswered(mill, chats, ROUNDS)
  }

  itOnRealRedis('lose no turn and double none: 40 turns, 10 kills', lose).timeout(2 * BOUND_MS)
})
