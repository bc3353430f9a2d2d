import { expect } from 'chai'
import fc from 'fast-check'
import { bugs } from './bugs.ts'
import { plan } from './plan.ts'
import { play } from './play.ts'
import { simulate } from './simulate.ts'

const isFull = process.env.THREADMILL_FULL === '1'
const seeds = isFull ? 20_000 : 3_000

describe('Any run of several processes, of which things go wrong', function () {
  this.timeout(isFull ? 1_200_000 : 300_000)

  it('leaves nothing unanswered, doubled or torn, and no write of a claim that lapsed (R11, R18, R19, R23, R24, S9)', async () => {
    const failed = await simulate({ seeds, first: 1 })
    if (failed !== null) expect.fail(failed.report)
  })

  it('is the same run whenever it is played again', async () => {
    for (let seed = 1; seed <= 5; seed++) {
      const [drawn] = fc.sample(plan, { seed, numRuns: 1 })
      if (drawn === undefined) throw new Error('no plan was drawn')
      const { lines } = await play(drawn, { traced: true })
      expect(lines.length).to.be.greaterThan(0)
      expect((await play(drawn, { traced: true })).lines).to.eql(lines)
    }
  })
})

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
