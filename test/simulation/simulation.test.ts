import { expect } from 'chai'
import fc from 'fast-check'
import { bugs } from './bugs.ts'
import { type Plan, plan } from './plan.ts'
import { play } from './play.ts'
import { simulate } from './simulate.ts'
import { SqliteFile } from './sqlite-file.ts'

const isFull = process.env.THREADMILL_FULL === '1'
const seeds = isFull ? 20_000 : 3_000
const seedsOnSqlite = isFull ? 800 : 60
const seedsPlayedAgain = isFull ? 100 : 15

describe('Any run of several processes, of which things go wrong', function () {
  this.timeout(isFull ? 1_200_000 : 300_000)

  it('leaves nothing unanswered, doubled or torn, and no write of a claim that lapsed (R11, R18, R19, R23, R24, S9)', async () => {
    const failed = await simulate({ seeds, first: 1 })
    if (failed !== null) expect.fail(failed.report)
  })

  it('is the same run whenever it is played again', async () => {
    for (let seed = 1; seed <= 5; seed++) {
      const { lines } = await play(planOf(seed), { traced: true })
      expect(lines.length).to.be.greaterThan(0)
      expect((await play(planOf(seed), { traced: true })).lines).to.eql(lines)
    }
  })
})

describe('Any run of several processes on a real database, of which things go wrong between any two statements', function () {
  this.timeout(isFull ? 600_000 : 120_000)
  let file: SqliteFile

  before(async () => {
    file = await SqliteFile.create()
  })

  after(() => file.close())

  it('leaves nothing unanswered, doubled or torn, and no write of a claim that lapsed (R11, R18, R19, R23, R24, S9)', async () => {
    const failed = await simulate({ seeds: seedsOnSqlite, first: 100_001, file })
    if (failed !== null) expect.fail(failed.report)
  })

  it('is the same run whenever it is played again', async () => {
    for (let seed = 1; seed <= seedsPlayedAgain; seed++) {
      const lines = await storyOf(seed, file)
      expect(lines.length).to.be.greaterThan(0)
      expect(await storyOf(seed, file)).to.eql(lines)
    }
  })
})

function planOf(seed: number): Plan {
  const [drawn] = fc.sample(plan, { seed, numRuns: 1 })
  if (drawn === undefined) throw new Error('no plan was drawn')
  return drawn
}

/** Without what `models/` makes up at random. */
async function storyOf(seed: number, file: SqliteFile): Promise<string[]> {
  const { lines } = await play(planOf(seed), { traced: true, file })
  return lines.map((line) => line.replaceAll(/call_[0-9a-f]*/g, 'call_…'))
}

describe('The simulator', function () {
  this.timeout(300_000)

  for (const [what, bug] of Object.entries(bugs)) {
    it(`finds that ${what}, within ${bug.within} seeds`, async () => {
      const failed = await simulate({ seeds: bug.within, first: 1, bug, shrinks: false })
      expect(failed, 'what was found').to.not.equal(null)
    })
  }

  it('makes what it found small, and tells its story', async () => {
    const failed = await simulate({ seeds: 100, first: 1, bug: bugs['nobody sweeps'] })
    const { acts, faults, replies } = failed?.plan ?? { acts: [], faults: [], replies: [] }
    expect(acts).to.have.length(1)
    expect([...faults, ...replies]).to.have.length.below(2)
    expect(failed?.report)
      .to.match(/seed \d+/)
      .and.to.include('app')
      .and.to.include('WRONG')
  })
})
