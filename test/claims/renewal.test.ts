import { expect } from 'chai'
import { Renewal } from '../../src/claims/renewal.ts'
import { deferred } from '../tools/rows.ts'

const times = { ttlMs: 45_000, renewMs: 10_000, marginMs: 5_000 }

describe('The renewal of claims', () => {
  const realNow = Date.now
  let ahead = 0
  let statements: string[] = []
  let reports: string[] = []
  let gaps: number[] = []
  /** What the next statements come to; what is left out succeeds. */
  let chatAnswers: (boolean | Error | Promise<boolean>)[] = []
  let callAnswers: (Error | Promise<void>)[] = []
  /** How long the next statements wait for a connection, in ms; what is left out does not. */
  let waits: number[] = []
  let renewal = new Renewal(rows(), times, report())

  function rows() {
    return {
      async renewChat(chatId: string, claimId: string, onSent: () => void) {
        later(waits.shift() ?? 0)
        onSent()
        statements.push(`${chatId} ${claimId}`)
        const answer = chatAnswers.shift() ?? true
        if (answer instanceof Error) throw answer
        return answer
      },
      async renewToolCall(callId: string, claimId: string) {
        statements.push(`${callId} ${claimId}`)
        const answer = callAnswers.shift()
        if (answer instanceof Error) throw answer
        await answer
      },
    }
  }

  function report() {
    return {
      renewed: (claimId: string, _elapsed: number, gap: number) => {
        reports.push(`renewed ${claimId}`)
        gaps.push(Math.round(gap / 1_000))
      },
      lost: (claimId: string) => reports.push(`lost ${claimId}`),
    }
  }

  /** The wall clock jumps, as it does for a machine that slept. */
  const later = (ms: number) => {
    ahead += ms
  }

  beforeEach(() => {
    ahead = 0
    Date.now = () => realNow() + ahead
    statements = []
    reports = []
    gaps = []
    chatAnswers = []
    callAnswers = []
    waits = []
    renewal = new Renewal(rows(), times, report())
    renewal.hold('claim', 'chat', 0)
  })
  afterEach(() => {
    Date.now = realNow
  })

  it('renews a claim only once its time has come, and again after as long', async () => {
    later(9_000)
    await renewal.tick()
    expect(statements).to.eql([])
    later(1_000)
    await renewal.tick()
    await renewal.tick()
    expect(statements).to.eql(['chat claim'])
    expect(reports).to.eql(['renewed claim'])
    later(10_000)
    await renewal.tick()
    expect(statements).to.have.length(2)
  })

  it('says how long the claim went without, so that a late renewal can be told of', async () => {
    later(10_000)
    await renewal.tick()
    chatAnswers = [new Error('the database is away')]
    later(12_000)
    await renewal.tick()
    later(12_000)
    await renewal.tick()
    expect(gaps).to.eql([10, 24])
  })

  it('counts from the start of the take, not from the moment at which it was told', async () => {
    renewal.hold('older', 'other', 10_000)
    await renewal.tick()
    expect(statements).to.eql(['other older'])
  })

  it('counts a renewal from when its statement goes, however long it waited for a connection (E142)', async () => {
    waits = [20_000]
    later(10_000)
    await renewal.tick()
    expect(gaps).to.eql([30])
    later(9_000)
    await renewal.tick()
    expect(statements, 'renewed 9 s ago').to.have.length(1)
    later(1_000)
    await renewal.tick()
    expect(gaps).to.eql([30, 10])
  })

  it('renews the tool calls of a claim before its chat, and no longer once they are dropped', async () => {
    renewal.holdToolCall('claim', 'call 1')
    renewal.holdToolCall('claim', 'call 2')
    const slow = deferred<void>()
    callAnswers = [slow.promise]
    later(10_000)
    const ticking = renewal.tick()
    await new Promise((resolve) => setImmediate(resolve))
    expect(statements).to.eql(['call 1 claim', 'call 2 claim'])
    slow.resolve()
    await ticking
    expect(statements).to.eql(['call 1 claim', 'call 2 claim', 'chat claim'])

    statements = []
    renewal.dropToolCall('claim', 'call 1')
    later(10_000)
    await renewal.tick()
    expect(statements).to.eql(['call 2 claim', 'chat claim'])
  })

  it('tries again at each tick after an error, and gives the claim up 5 s before it would lapse', async () => {
    const away = () => new Error('the database is away')
    chatAnswers = [away(), away(), away(), away()]
    later(10_000)
    await renewal.tick()
    await renewal.tick()
    expect(statements).to.have.length(2)
    later(29_000)
    await renewal.tick()
    expect(reports, 'at 39 s').to.eql([])
    later(1_000)
    await renewal.tick()
    expect(reports, 'at 40 s').to.eql(['lost claim'])
    await renewal.tick()
    expect(statements).to.have.length(4)
    expect(reports).to.eql(['lost claim'])
  })

  it('keeps a claim whose errors pass in time', async () => {
    chatAnswers = [new Error('away')]
    callAnswers = [new Error('locked')]
    renewal.holdToolCall('claim', 'call')
    later(10_000)
    await renewal.tick()
    expect(statements, 'a call that could not be renewed must not be outlived').to.eql(['call claim'])
    await renewal.tick()
    await renewal.tick()
    expect(reports).to.eql(['renewed claim'])
    later(39_000)
    expect(reports).to.eql(['renewed claim'])
  })

  it('reports a claim that has no row any more as lost, once, and never renews it again', async () => {
    chatAnswers = [false]
    later(10_000)
    await renewal.tick()
    expect(reports).to.eql(['lost claim'])
    renewal.holdToolCall('claim', 'call')
    later(10_000)
    await renewal.tick()
    expect(statements).to.eql(['chat claim'])
    expect(reports).to.eql(['lost claim'])
  })

  it('gives up a claim whose renewal never comes back, in time and once, whatever it says in the end', async () => {
    const hung = deferred<boolean>()
    chatAnswers = [hung.promise]
    later(10_000)
    const ticking = renewal.tick()
    later(29_000)
    await renewal.tick()
    expect(statements, 'one statement at a time').to.have.length(1)
    expect(reports, 'at 39 s').to.eql([])
    later(1_000)
    await renewal.tick()
    expect(reports, 'at 40 s').to.eql(['lost claim'])
    hung.resolve(true)
    await ticking
    await renewal.tick()
    expect(reports).to.eql(['lost claim'])
    expect(statements).to.have.length(1)
  })

  it('says nothing of a claim that was given back meanwhile', async () => {
    for (const answer of [true, false, new Error('away')]) {
      renewal.hold('brief', 'other', 45_000)
      chatAnswers = [answer]
      const ticking = renewal.tick()
      renewal.drop('brief')
      await ticking
    }
    expect(reports).to.eql([])
  })

  it('renews its claims side by side: one that hangs holds up no other', async () => {
    renewal.hold('second', 'other', 0)
    chatAnswers = [deferred<boolean>().promise]
    later(10_000)
    void renewal.tick()
    await new Promise((resolve) => setImmediate(resolve))
    expect(reports).to.eql(['renewed second'])
  })
})
