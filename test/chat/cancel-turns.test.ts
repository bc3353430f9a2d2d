import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { CancelledError, type Chat } from '../../src/index.ts'
import { gate, text } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { useWorkerProcesses } from '../support/worker-processes.ts'
import { errorFrom } from '../tools/rows.ts'
import { chatRow, usageRows } from './support/rows.ts'

const eight = 'one two three four five six seven eight'
const app = fileURLToPath(new URL('./apps/plain.ts', import.meta.url))

onEachDatabase('A cancel and the turns after it', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })
  const processes = useWorkerProcesses()

  const spoken = async (chat: Chat) => (await chat.messages()).map(({ role, content }) => `${role}: ${content}`)

  /** Everything that a viewer was told, up to the end of the run. */
  async function events(chat: Chat, last: 'run.cancelled' | 'run.finished') {
    const seen = []
    for await (const event of chat.events({ after: '0' })) {
      seen.push(event)
      if (event.type === last) break
    }
    return seen
  }

  it('keeps three chunks and shows none of the five late ones; the next message is answered in full (B60, S65)', async () => {
    const held = gate(text(eight, { chunks: 'words' }))
    await bench.script([held, text('All of the next answer.')])
    const here = await bench.connect()
    const there = await bench.connect()
    const chat = await here.chats.create()
    const other = await there.chats.find(chat.id)
    await here.startWorkers().ready()
    await chat.askLater('Count', { enqueue: true })
    await held.reached
    let shown = ''
    const reading = (async () => {
      for await (const event of other.events({ after: '0' })) {
        if (event.type === 'text.delta') shown += event.text
        if (shown.trim() === 'one two three') return
      }
    })()
    for (const _ of [1, 2, 3]) await held.step()
    await reading

    const begun = performance.now()
    await other.cancel()
    await until('the turn is settled', async () => !(await other.running()))
    expect(performance.now() - begun).to.be.below(2_000)
    held.release()
    await other.cancel()
    expect([await other.cancelled(), await other.running(), await other.isComplete()]).to.deep.equal([
      false,
      false,
      true,
    ])
    const kept = (await spoken(chat))[1]
    expect(kept?.trim()).to.equal('assistant: one two three')
    const told = await events(other, 'run.cancelled')
    expect(told.map((event) => (event.type === 'text.delta' ? event.text : '')).join('')).to.equal(
      kept?.slice('assistant: '.length),
    )

    await other.askLater('next', { enqueue: true })
    await until('the next message is answered', () => other.isComplete())
    const said = await spoken(chat)
    expect(said.slice(2)).to.deep.equal(['user: next', 'assistant: All of the next answer.'])
    expect((await chat.messages()).at(-1)?.finishReason).to.equal('stop')
    expect(bench.model.requests).to.have.length(2)
    expect((await usageRows(here, chat)).map(({ status }) => status)).to.deep.equal(['cancelled', 'succeeded'])
  })

  for (const [when, lapsed] of [
    ['while the dead worker still holds the chat', false],
    ['after its claim has lapsed', true],
  ] as const) {
    it(`outlives a worker that died before it saw it; the next message comes ${when} (B60)`, async function () {
      this.timeout(120_000)
      const held = gate(text(eight, { chunks: 'words' }))
      await bench.script([held, text('All of the next answer.')])
      const here = await bench.connect({ sweepEveryMs: 60_000 })
      const chat = await here.chats.create()
      const worker = await processes.start(app, { ...bench.options(), claimTtlMs: 3_000, counts: { complete: 1 } })
      await chat.askLater('Count', { enqueue: true })
      await held.reached
      for (const _ of [1, 2, 3]) await held.step()
      worker.signal('SIGSTOP')
      await chat.cancel()
      expect(await chat.cancelled()).to.equal(true)
      worker.signal('SIGKILL')
      await worker.ended
      if (lapsed) await until('the claim has lapsed', async () => !(await chat.running()))
      await chat.askLater('next', { enqueue: true })

      const second = await bench.connect()
      await second.startWorkers().ready()
      await until(
        'the next message is answered',
        async () => (await spoken(chat)).at(-1)?.startsWith('assistant'),
        30_000,
      )
      expect(await spoken(chat)).to.deep.equal(['user: Count', 'user: next', 'assistant: All of the next answer.'])
      await until('the chat is complete', async () => (await chat.isComplete()) && !(await chat.running()))
      expect(bench.model.requests).to.have.length(2)
      const row = await chatRow(here, chat)
      expect([row.cancelTurn, row.wantedAt, row.failure]).to.deep.equal([null, null, null])
      expect((await usageRows(here, chat)).map(({ status }) => status)).to.deep.equal(['failed', 'succeeded'])
    })
  }

  it('does nothing to a chat that is idle, nor to its next message (B60)', async () => {
    await bench.script([text('First.'), text('Second, in full.')])
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    for (const [at, answer] of ['First.', 'Second, in full.'].entries()) {
      const before = await chatRow(mill, chat)
      await chat.cancel()
      const after = await chatRow(mill, chat)
      expect([await chat.cancelled(), after.wantedSeq]).to.deep.equal([false, before.wantedSeq])
      expect((await chat.ask(`message ${at}`))?.content).to.equal(answer)
    }
  })

  it('does nothing to a message that is only staged', async () => {
    await bench.script([text('Answered.')])
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    await chat.askLater('Staged')
    await chat.cancel()
    expect((await chat.complete())?.content).to.equal('Answered.')
  })

  it('lets a message that was queued after it run, though both came before anyone looked', async () => {
    await bench.script([text('About the second.')])
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    await chat.askLater('First', { enqueue: true })
    await chat.cancel()
    await chat.queue('Second', { steer: false })
    await mill.startWorkers().ready()
    await until('the second is answered', () => chat.isComplete())
    expect(await spoken(chat)).to.deep.equal(['user: First', 'user: Second', 'assistant: About the second.'])
    expect(bench.model.requests).to.have.length(1)
  })

  it('is answered by an explicit complete with the text that was kept, without the model (S65)', async () => {
    const held = gate(text(eight, { chunks: 'words' }))
    await bench.script([held])
    const [here, there] = [await bench.connect(), await bench.connect()]
    const chat = await here.chats.create()
    const ended = errorFrom(() => chat.ask('Count'))
    await held.reached
    for (const _ of [1, 2]) await held.step()
    await (await there.chats.find(chat.id)).cancel()
    expect(await ended).to.be.instanceOf(CancelledError)
    const kept = await chat.complete()
    expect([kept?.content?.trim(), kept?.finishReason]).to.deep.equal(['one two', 'cancelled'])
    expect(bench.model.requests).to.have.length(1)
  })
})
