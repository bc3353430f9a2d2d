import { expect } from 'chai'
import { ArgumentError, defineAgent, openAiClient } from '../../src/index.ts'
import { text } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { errorFrom } from '../tools/rows.ts'
import { freshName } from './support/tools.ts'

onEachDatabase('A boundary of the prompt cache', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 45_000 })
  const newChat = async () => {
    await bench.script(() => text('Yes'))
    const client = openAiClient({ apiKey: 'k', baseURL: bench.model.url, provider: 'openrouter' })
    const agent = defineAgent({ name: freshName(), client })
    const mill = await bench.connect({ agents: [agent] })
    return { mill, chat: await mill.chats.create({ agent }) }
  }
  /** What the last request says, the texts that end at a boundary in brackets. */
  const sent = () =>
    bench.model.requests.at(-1)?.messages.map(({ content }) => {
      if (!Array.isArray(content)) return content
      const [part] = content as { text: string; cache_control?: { type: string; ttl?: string } }[]
      return `[${[part?.text, part?.cache_control?.ttl].filter(Boolean).join(' ')}]`
    })

  it('may stand behind instructions of the object alone (E20)', async () => {
    const { mill, chat } = await newChat()
    chat.withInstructions('Mine', { persist: false, cacheUntilHere: { ttl: '1h' } })
    await chat.ask('Go')
    expect(sent()).to.deep.equal(['[Mine 1h]', 'Go'])
    await (await mill.chats.find(chat.id)).ask('Again')
    expect(sent()).to.deep.equal(['Go', 'Yes', 'Again'])
  })

  it('is sent of the latest four messages at most: a provider refuses more (E22)', async () => {
    const { chat } = await newChat()
    for (const content of ['1', '2', '3', '4', '5', '6']) {
      await chat.addMessage({ role: 'user', content })
      await chat.cacheUntilHere()
    }
    await chat.complete()
    expect(sent()).to.deep.equal(['1', '2', '[3]', '[4]', '[5]', '[6]'])
  })

  it('takes nothing but a ttl, in which every provider sees a duration (S103)', async () => {
    const { mill, chat } = await newChat()
    await chat.ask('Go')
    const record = await mill.models.Message.findOne({ where: { chatId: chat.id, role: 'user' } })
    for (const bad of [{ ttl: 'long' }, { ttl: '' }, { ttl: 5 }, { ttl: null }, { tll: '1h' }, null] as never[]) {
      for (const mark of [() => chat.cacheUntilHere(bad), () => record?.cacheUntilHere(bad)]) {
        const error = await errorFrom(mark)
        expect(error, JSON.stringify(bad)).to.be.instanceOf(ArgumentError)
        expect((error as Error).message).to.contain(chat.id)
      }
    }
    const stored = await mill.models.Message.findAll({ where: { chatId: chat.id } })
    expect(stored.map((row) => row.cacheBoundary)).to.deep.equal([null, null])
    await record?.cacheUntilHere({ ttl: '5m' })
    await chat.ask('Again')
    expect(sent()).to.deep.equal(['[Go 5m]', 'Yes', 'Again'])
  })
})
