import { expect } from 'chai'
import { text } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { allAtRest, overlapsOf } from './support/load.ts'
import { expectWhole } from './support/rows.ts'
import { useWorkers } from './support/workers.ts'

const CHATS = 50
const LIMIT_MS = 180_000

onEachDatabase('Turns that two processes post at once', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 4_000 })
  const workers = useWorkers()

  it('on 50 chats lose no user message and bring none out of order', async () => {
    const model = await bench.script((request) =>
      text(`${request.messages.filter(({ role }) => role === 'user').length} heard`, { delayMs: 20 }),
    )
    const [one, two] = [await bench.connect(), await bench.connect()]
    const start = () => workers.start({ app: 'clerk', options: { ...bench.options(), counts: { complete: 10 } } })
    await Promise.all([start(), start()])
    const chats = await Promise.all(Array.from({ length: CHATS }, () => one.chats.create()))
    // Each poster waits for its first message to be taken before it posts the second.
    const post = async (mill: typeof one, name: string, chatId: string, at: number) => {
      const chat = await mill.chats.find(chatId)
      for (const turn of [1, 2]) await chat.askLater(`${name}${turn} of ${at}`, { enqueue: true })
    }
    await Promise.all(chats.flatMap(({ id }, at) => [post(one, 'a', id, at), post(two, 'b', id, at)]))
    await allAtRest(chats, 90_000)
    for (const [at, chat] of chats.entries()) {
      const messages = await chat.messages()
      const asked = messages.filter(({ role }) => role === 'user').map(({ content }) => content)
      expect(asked).to.have.members(['a1', 'a2', 'b1', 'b2'].map((name) => `${name} of ${at}`))
      expect(asked.filter((content) => content?.startsWith('a'))).to.eql([`a1 of ${at}`, `a2 of ${at}`])
      expect(asked.filter((content) => content?.startsWith('b'))).to.eql([`b1 of ${at}`, `b2 of ${at}`])
      expect(messages.at(-1)).to.include({ role: 'assistant', content: '4 heard' })
      expect(await chat.queuedMessages()).to.eql([])
      await expectWhole(one, chat)
    }
    expect(overlapsOf(model.requests)).to.eql([])
  }).timeout(LIMIT_MS)
})
