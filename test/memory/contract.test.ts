import { expect } from 'chai'
import type { Database } from '../../models/database.ts'
import type { Threadmill } from '../../src/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { insidesOf } from '../support/insides.ts'
import { useBench } from '../support/mills.ts'
import { Actor } from './contract/actor.ts'
import { scenarios } from './contract/scenarios.ts'
import { normal, normalDump, type Side } from './contract/side.ts'
import { databaseSide, memorySide } from './contract/sides.ts'

const ttlMs = 60 * 60_000

onEachDatabase('The rows in memory', (kind) => {
  const bench = useBench(kind, { sweepEveryMs: 60_000 })
  let mill: Threadmill
  let db: Database

  beforeEach(async () => {
    mill = await bench.connect()
    db = insidesOf(mill).db
    const { Chat, Usage } = mill.models
    await Usage.destroy({ where: {} })
    await Chat.destroy({ where: {} })
    for (const table of ['decisions', 'receipts', 'queuedMessages', 'toolCalls', 'messages'] as const) {
      await db.write(`DELETE FROM ${db.tables[table]}`, {})
    }
  })

  for (const [title, scenario] of Object.entries(scenarios)) {
    it(`are written, read and refused as those of the database: ${title} (R11, S9)`, async () => {
      const told: [string, unknown][][] = []
      for (const side of [memorySide(ttlMs), databaseSide(db, ttlMs)]) {
        const log: [string, unknown][] = []
        told.push(log)
        await scenario(new Actor(side, (what, came) => tell(log, side, what, came)))
      }
      const [memory = [], database = []] = told
      expect(memory.length).to.be.greaterThan(1)
      for (const [at, [what, came]] of memory.entries()) expect([what, came], what).to.eql(database[at])
      expect(memory.length).to.equal(database.length)
    })
  }
})

/** Notes what a statement came to, and every row as it is after it. */
async function tell(log: [string, unknown][], side: Side, what: string, came: unknown): Promise<void> {
  const now = side.now()
  log.push([what, { came: normal(came, now), rows: normalDump(await side.dump(), now) }])
}
