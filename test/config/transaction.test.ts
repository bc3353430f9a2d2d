import { expect } from 'chai'
import type { Sequelize, Transaction } from 'sequelize'
import { inTransaction, isLockConflict } from '../../config/transaction.ts'
import { rejection } from './support/helpers.ts'

const failure = (details: object) => Object.assign(new Error('failed'), details)
/** A Sequelize whose transactions do nothing but run the closure. */
const runner = {
  transaction: (work: (t: Transaction) => Promise<unknown>) => work({} as Transaction),
} as unknown as Sequelize

describe('inTransaction', () => {
  const conflicts = {
    'a deadlock': failure({ parent: failure({ errno: 1213, code: 'ER_LOCK_DEADLOCK' }) }),
    'a lock wait timeout': failure({ parent: failure({ errno: 1205, code: 'ER_LOCK_WAIT_TIMEOUT' }) }),
    'a busy SQLite': failure({ parent: failure({ code: 'SQLITE_BUSY' }) }),
  }
  for (const [name, error] of Object.entries(conflicts)) {
    it(`runs the closure again after ${name}, with growing pauses`, async () => {
      let runs = 0
      const pauses: number[] = []
      const work = async () => {
        if (++runs < 4) throw error
        return 'done'
      }
      const sleep = async (ms: number) => {
        pauses.push(ms)
      }
      expect(await inTransaction(runner, work, { sleep, random: () => 0.5 })).to.equal('done')
      expect(pauses).to.deep.equal([10, 20, 40])
    })
  }

  for (const [name, details] of Object.entries({
    'a unique violation': { parent: failure({ errno: 1062 }) },
    'a lost connection': { parent: failure({ code: 'ECONNRESET' }) },
    'an error of the application': {},
  })) {
    it(`lets ${name} out as it is, after one run`, async () => {
      let runs = 0
      const error = failure(details)
      const caught = await rejection(
        inTransaction(runner, async () => {
          runs++
          throw error
        }),
      )
      expect(caught).to.equal(error)
      expect(runs).to.equal(1)
      expect(isLockConflict(error)).to.equal(false)
    })
  }

  it('gives up after the stated number of runs with the last conflict', async () => {
    let runs = 0
    const work = async () => {
      throw failure({ errno: 1213, run: ++runs })
    }
    const caught = await rejection(inTransaction(runner, work, { attempts: 3, sleep: async () => {} }))
    expect(caught).to.include({ run: 3 })
  })
})
