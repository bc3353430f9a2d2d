import { expect } from 'chai'
import { gate, text } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'

onEachDatabase('Closing while Redis is away', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 45_000 })
  beforeEach(() => bench.redis.restart())

  it('ends workers that have nothing to do (R27)', async () => {
    const mill = await bench.connect()
    await mill.startWorkers({ complete: 1, runTools: 1 }).ready()
    await bench.redis.kill()
    await mill.close()
  })

  it('lets a turn end first, keeps its answer and gives the chat back (R27, S12)', async function () {
    this.timeout(40_000)
    const held = gate(text('Here I am.'))
    await bench.script([held])
    const [mill, web] = [await bench.connect(), await bench.connect()]
    const chat = await web.chats.create()
    await mill.startWorkers({ complete: 1, runTools: 0 }).ready()
    await chat.askLater('Hello?', { enqueue: true })
    await held.reached
    await bench.redis.kill()
    let closed = false
    const closing = mill.close().then(() => {
      closed = true
    })
    expect(await chat.running()).to.equal(true)
    expect(closed, 'closed before the turn has ended').to.equal(false)
    held.release()
    await until('the pool is closed', () => closed, 20_000)
    await closing
    expect((await chat.messages()).map((message) => message.content)).to.deep.equal(['Hello?', 'Here I am.'])
    expect(await chat.running()).to.equal(false)
    expect(bench.model.requests).to.have.length(1)
  })
})
