import { expect } from 'chai'
import type { Database } from '../../models/database.ts'
import { readInbox } from '../../models/inbox.ts'
import { dueChats, keepPutOffShort, liftPutOff } from '../../models/sweep.ts'
import { Threadmill } from '../../src/index.ts'
import { toolCalls } from '../../src/testing/index.ts'
import { report } from '../processes/support/load.ts'
import { onEachDatabase, type TestDatabase } from '../support/databases.ts'
import { insidesOf } from '../support/insides.ts'
import { useBench } from '../support/mills.ts'
import { itOnRealRedis } from '../support/real-redis.ts'
import { copyChat } from './support/many-chats.ts'
import { reported, usePrograms } from './support/programs.ts'
import { planOf, rowsReadBy } from './support/statements.ts'
import { agents } from './traffic/agents.ts'

const full = process.env.THREADMILL_FULL === '1'
const many = full ? 100_000 : 10_000
const numbers = full ? { settleMs: 3_000, windowMs: 30_000 } : { settleMs: 2_000, windowMs: 8_000 }
/** How much more of a processor's time a worker may take than one that has no chats at all, in percent; one collection of garbage is more of a short window. */
const mostMore = full ? 0.5 : 1.5
/** How much it may take at all; it is 0.3 on a machine that has nothing else to do. */
const mostAtAll = full ? 1.5 : 4
/** What the sweeper asks for at once. */
const batch = 200

onEachDatabase(`${many} chats that wait for a person`, (kind) => {
  const bench = useBench(kind, { sweepEveryMs: 1_000 })
  const programs = usePrograms()
  let nothing: TestDatabase | undefined
  let mill: Threadmill
  let db: Database

  before(async function () {
    this.timeout(300_000)
    nothing = await kind.create()
    await (await Threadmill.connect({ ...bench.options(), databaseUrl: nothing.url, migrate: true })).close()
    await bench.script(() => toolCalls([{ name: 'pay', arguments: {} }]))
    const first = await bench.connect({ agents })
    const chat = await first.chats.create({ agent: 'desk', owner: 'customer 1' })
    await chat.ask('Pay')
    expect(await chat.awaitingApproval()).to.equal(true)
    await copyChat(first, chat, many)
    await first.close()
  })
  beforeEach(async () => {
    mill = await bench.connect({ agents })
    db = insidesOf(mill).db
  })
  after(() => nothing?.drop())

  const file = () => bench.database.url.slice('sqlite:'.length)

  itOnRealRedis('cost a worker process no key in Redis, no timer and next to no time (E152)', async () => {
    const { databaseUrl = '', redisUrl = '', ...options } = bench.options()
    const watch = (url: string, redisPrefix: string) =>
      programs.run('leak-idle', { options: { ...options, databaseUrl: url, redisUrl, redisPrefix }, numbers })
    const [idle, busy] = await Promise.all([watch(nothing?.url ?? '', 'empty'), watch(databaseUrl, 'many')])
    const [idleCpu, busyCpu] = [reported<number>(idle, 'cpuPercent'), reported<number>(busy, 'cpuPercent')]
    expect(reported<string[]>(busy, 'keys')).to.deep.equal(reported<string[]>(idle, 'keys'))
    expect(reported<number>(busy, 'timers')).to.be.at.most(reported<number>(idle, 'timers'))
    report(`CPU of a worker with ${many} parked chats: ${busyCpu.toFixed(2)} %, with none: ${idleCpu.toFixed(2)} %`)
    expect(busyCpu - idleCpu).to.be.below(mostMore)
    expect(busyCpu).to.be.below(mostAtAll)
  }).timeout(240_000)

  /** What workers ask again and again, or as they start; which index it goes by, and how many rows it may read. */
  const asked = (dueNow: number) =>
    [
      [(on: Database) => dueChats(on, batch), ['wanted', 'compact'], 30 + 6 * Math.min(dueNow, batch)],
      [(on: Database) => keepPutOffShort(on, ['desk', 'helper']), ['put_off'], 30],
      [(on: Database) => liftPutOff(on, ['desk', 'helper'], 'none'), ['put_off', 'has_failed'], 30],
    ] as const

  async function expectNarrow(dueNow: number): Promise<void> {
    for (const [act, indexes, most] of asked(dueNow)) {
      const plan = await planOf(db, file(), act)
      for (const index of indexes) expect(plan).to.contain(`threadmill_chats_${index}`)
      expect(plan, 'a whole table').not.to.match(
        /SCAN threadmill_chats|"table":"threadmill_chats","type":"(ALL|index)"/,
      )
      const read = await rowsReadBy(db, act)
      expect(read, plan).to.be.at.most(most)
    }
  }

  it('are not looked at by what workers ask, whether parked, done or wanted later, and due ones only by the batch (E153)', async () => {
    await expectNarrow(0)
    const { chats } = db.tables
    const later = db.dialect.nowPlus('$ms')
    await db.write(
      `UPDATE ${chats} SET parked = 0, wanted_at = CASE WHEN id < '00001000' THEN ${db.dialect.now} ` +
        `WHEN id < '${many / 2}' THEN NULL ELSE ${later} END`,
      { ms: 86_400_000 },
    )
    await expectNarrow(1_000)
    expect(await dueChats(db, batch)).to.have.length(batch)
  }).timeout(240_000)

  it('make no page of the inbox longer (E154)', async () => {
    const page = (on: Database) => readInbox(on, { owner: null, before: null, limit: 50 })
    expect(await planOf(db, file(), page)).to.contain('threadmill_tool_calls_inbox')
    expect(await rowsReadBy(db, page)).to.be.at.most(150)
    expect(await page(db)).to.have.length(50)
  })
})
