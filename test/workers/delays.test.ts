import { expect } from 'chai'
import { text } from '../../src/testing/index.ts'
import { chatRow } from '../chat/support/rows.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'

onEachDatabase('A chat that is enqueued with a delay', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })

  it('is run when that time has come, and not before, though workers sweep all the while', async () => {
    await bench.script([text('Good morning.')])
    let sweeps = 0
    const mill = await bench.connect({
      sweepEveryMs: 100,
      observe: { onStatement: (sql) => /wanted_at <= .* ORDER BY wanted_at/.test(sql) && sweeps++ },
    })
    await mill.startWorkers().ready()
    const chat = await mill.chats.create()
    await chat.askLater('Wake me later')
    const begun = Date.now()
    await mill.jobs.complete.enqueue(chat, { delayMs: 1_500 })
    const due = (await chatRow(mill, chat)).wantedAt?.getTime() ?? Number.NaN
    expect(due - begun).to.be.within(1_400, 10_000)
    await until('the sweeper has looked', () => sweeps >= 3)
    await until('it is answered', () => chat.isComplete())
    // Whole milliseconds, by two clocks.
    expect(bench.model.requests[0]?.startedAt).to.be.at.least(due - 2)
    expect(bench.model.requests).to.have.length(1)
  })

  it('is run at once where it is enqueued without one meanwhile: the earliest wish counts', async () => {
    await bench.script([text('Good morning.')])
    const mill = await bench.connect()
    await mill.startWorkers().ready()
    const chat = await mill.chats.create()
    await chat.askLater('Wake me later')
    await mill.jobs.complete.enqueue(chat.id, { delayMs: 3_600_000 })
    expect((await chatRow(mill, chat)).wantedAt?.getTime()).to.be.above(Date.now() + 3_000_000)
    await mill.jobs.complete.enqueue(chat.id)
    await until('it is answered', () => chat.isComplete())
    await until('it is given back', async () => (await chatRow(mill, chat)).claimedBy === null)
    expect((await chatRow(mill, chat)).wantedAt).to.equal(null)
  })
})
