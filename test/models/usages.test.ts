import { expect } from 'chai'
import { retryConflicts } from '../../config/transaction.ts'
import type { Database } from '../../models/database.ts'
import { dialectOf } from '../../models/dialect.ts'
import { closeOrphanedUsages, closeUsage, openUsage } from '../../models/usages.ts'
import { usageClosing } from '../../src/loop/usage-closing.ts'

const deadlock = () => Object.assign(new Error('lost'), { parent: Object.assign(new Error('lost'), { errno: 1213 }) })

describe('A write of the ledger that loses to another transaction', () => {
  /** A database that loses this often, and counts what it was asked. */
  function losing(times: number) {
    const asked: string[] = []
    const meet = async (sql: string) => {
      asked.push(sql)
      if (asked.length <= times) throw deadlock()
      return 1
    }
    const db = {
      dialect: dialectOf('mysql'),
      tables: { usages: 'usages' },
      write: meet,
      insert: async (table: string) => void (await meet(`INSERT INTO ${table}`)),
      retried: retryConflicts,
    } as unknown as Database
    return { db, asked }
  }
  const entry = {
    id: 'u',
    chatId: 'c',
    owner: null,
    answerId: null,
    operation: 'chat',
    provider: 'openai',
    model: 'gpt',
    claimToken: 1,
  } as const
  const closing = usageClosing({ status: 'succeeded', usage: null, prices: null })
  const writes: Record<string, (db: Database) => Promise<void>> = {
    'an entry that is opened': (db) => openUsage(db, entry),
    'an entry that is closed': (db) => closeUsage(db, 'u', closing),
    'entries of a dead run': (db) => closeOrphanedUsages(db, 'c', 2),
  }
  for (const [what, write] of Object.entries(writes)) {
    it(`is repeated as it was: ${what} (R21)`, async () => {
      const { db, asked } = losing(2)
      await write(db)
      expect(asked).to.have.length(3)
      expect(new Set(asked).size).to.equal(1)
    })
  }

  it('comes out as the conflict that it is when it never wins', async () => {
    const { db, asked } = losing(Number.POSITIVE_INFINITY)
    const error = await openUsage(db, entry).then(
      () => null,
      (thrown: unknown) => thrown,
    )
    expect(error).to.have.nested.property('parent.errno', 1213)
    expect(asked).to.have.length(8)
  })
})
