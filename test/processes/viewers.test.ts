import { expect } from 'chai'
import { gate, text } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { newPage } from '../support/page.ts'
import { until } from '../support/until.ts'
import { agents } from './apps/clerk.ts'
import { kill, useWorkers } from './support/workers.ts'

onEachDatabase('A viewer whose worker is killed in the middle of an answer', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 2_500 })
  const workers = useWorkers()

  it('is told that it begins anew, and shows what is stored in the end (B83)', async () => {
    const held = gate(text('The Rhine is long', { chunks: 'words' }))
    await bench.script([held, text('The Danube is longer')])
    const web = await bench.connect({ agents })
    const chat = await web.chats.create()
    const page = newPage()
    const viewing = (async () => {
      for await (const event of chat.events()) {
        page.show(event)
        if (event.type === 'run.finished') break
      }
    })()
    const worker = () => workers.start({ app: 'clerk', options: bench.options() })
    const first = await worker()
    await chat.askLater('Name a river', { enqueue: true })
    await held.reached
    for (const _ of [1, 2]) await held.step()
    await until('the first words are shown', () => [...page.texts.values()].join('') === 'The Rhine')
    await kill(first)
    await worker()
    await viewing
    const answer = (await chat.messages()).at(-1)
    expect(answer?.content).to.equal('The Danube is longer')
    expect([...page.texts]).to.deep.equal([[answer?.id, answer?.content]])
    expect(page.types.filter((type) => type === 'attempt.restarted')).to.have.length(1)
    expect(page.types).not.to.include('resync')
  }).timeout(120_000)
})
