import { expect } from 'chai'
import { BoundaryWatch } from './boundary.ts'
import { leastPerMinute, tooFew } from './minima.ts'
import { type DatabaseName, type Fault, planOf, rates } from './plan.ts'

const minutes = 3
const plan = (seed: number, database: DatabaseName = 'mysql') => planOf({ seed, database, ms: minutes * 60_000 })
const count = (faults: readonly Fault[], is: (fault: Fault) => boolean) => faults.filter(is).length

describe('The plan of a chaos run', () => {
  it('is the same for the same seed, and another for another (E160)', () => {
    expect(plan(7)).to.eql(plan(7))
    expect(plan(7)).to.not.eql(plan(8))
  })

  it('has faults of every kind in order, spread over the time (E160)', () => {
    const faults = plan(1)
    expect(faults.map(({ at }) => at)).to.eql(faults.map(({ at }) => at).toSorted((one, other) => one - other))
    expect(faults.at(-1)?.at).to.be.below(minutes * 60_000)
    for (const database of ['mysql', 'sqlite'] as const) {
      const kinds = new Set(plan(1, database).map(({ kind }) => kind))
      const wanted = Object.entries(rates[database]).filter(([, rate]) => rate > 0)
      expect([...kinds]).to.have.members(wanted.map(([kind]) => kind))
    }
    for (let minute = 0; minute < minutes; minute++) {
      const within = faults.filter(({ kind, at }) => kind === 'kill' && Math.floor(at / 60_000) === minute)
      expect(within.length).to.be.within(rates.mysql.kill - 1, rates.mysql.kill + 1)
    }
  })

  it('has enough of what a run must come to (E161)', () => {
    // A fifth of a run is on SQLite.
    const [mysql, sqlite] = [
      planOf({ seed: 1, database: 'mysql', ms: 720_000 }),
      planOf({ seed: 1, database: 'sqlite', ms: 180_000 }),
    ]
    const all = [...mysql, ...sqlite]
    expect(count(all, ({ kind }) => kind === 'kill')).to.be.above(15 * leastPerMinute.kill)
    expect(count(all, ({ kind }) => kind === 'freeze')).to.be.above(15 * leastPerMinute.freeze)
    for (const server of ['redis', 'database'] as const) {
      const restarts = count(all, (fault) => fault.kind === 'restart' && fault.server === server)
      expect(restarts, server).to.be.at.least(10)
    }
  })

  it('has about half of the kills and freezes at a statement (E160)', () => {
    const struck = planOf({ seed: 3, database: 'mysql', ms: 900_000 }).filter(
      ({ kind }) => kind === 'kill' || kind === 'freeze',
    )
    const at = count(struck, (fault) => 'boundary' in fault && fault.boundary !== null)
    expect(at / struck.length).to.be.within(0.4, 0.7)
  })
})

describe('Too few faults', () => {
  const enough = {
    turns: 133,
    kill: 13,
    freeze: 4,
    'restart-redis': 0,
    'restart-database': 0,
    approvals: 13,
    cancels: 13,
  }

  it('are none where there are as many as the minutes ask for (E161)', () => {
    expect(tooFew(enough, 1, true)).to.eql([])
  })

  it('are told, each with what there should have been (E161)', () => {
    expect(tooFew(enough, 3, true)).to.have.length(7)
    expect(tooFew({ ...enough, kill: 12 }, 1, true)).to.eql(['kill: 12, and there should be 13 at least'])
  })

  it('are none of a server that is not part of the run (E161)', () => {
    const many = {
      turns: 9_000,
      kill: 900,
      freeze: 900,
      'restart-redis': 90,
      'restart-database': 0,
      approvals: 900,
      cancels: 900,
    }
    expect(tooFew(many, 3, false)).to.eql([])
    expect(tooFew(many, 3, true)).to.have.length(1)
  })
})

describe('A boundary', () => {
  const take = 'UPDATE `threadmill_chats` SET deaths = 0, claimed_by = $1, claimed_until = now'
  const release = 'UPDATE threadmill_chats SET claimed_by = NULL, claimed_until = NULL'
  const insert = 'INSERT INTO threadmill_messages (id) VALUES ($1)'
  const link = 'UPDATE threadmill_tool_calls SET result_id = $1'

  it('is met by the nth statement of its kind, once (E160)', () => {
    const watch = new BoundaryWatch()
    watch.set({ statement: 'take', commit: false, moment: 'before', nth: 2 })
    expect([take, release, take, take].map((sql) => watch.pass(sql, null))).to.eql([null, null, 'before', null])
  })

  it('is met by the COMMIT of the transaction that its statement is part of (E160)', () => {
    const watch = new BoundaryWatch()
    const [one, other] = [{}, {}]
    watch.set({ statement: 'linkResult', commit: true, moment: 'after', nth: 1 })
    expect(watch.pass(insert, one)).to.equal(null)
    expect(watch.pass(link, one)).to.equal(null)
    expect(watch.pass(insert, other)).to.equal(null)
    expect(watch.pass('COMMIT;', other)).to.equal(null)
    expect(watch.pass('COMMIT;', one)).to.equal('after')
  })
})
