import { expect } from 'chai'
import { Redis } from 'ioredis'
import type { Chat, ChatEvent, EventsOptions } from '../../src/index.ts'
import { ConfigurationError, defineAgent } from '../../src/index.ts'
import { gate, text } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { newPage, type Page } from '../support/page.ts'
import { until } from '../support/until.ts'
import { eventsOf, ofType, rejectionOf } from './support/watching.ts'

async function flushAll(url: string): Promise<void> {
  const redis = new Redis(url)
  await redis.flushall()
  redis.disconnect()
}

const CHUNKS = 400
const REJOINS = 20
const words = (count: number) =>
  Array.from({ length: count }, (_, at) => `word-${at} `)
    .join('')
    .trim()

onEachDatabase('A viewer in another process than the worker', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 45_000, eventCoalesceMs: 2 })

  /** A worker that has begun an answer of so many words, and a viewer's own connection to the chat. */
  async function beginAnswer(whole: string) {
    const held = gate(text(whole, { chunks: 'words' }))
    await bench.script([held, text('And more.')])
    const worker = await bench.connect()
    const web = await bench.connect()
    await worker.startWorkers({ complete: 1, runTools: 0 }).ready()
    const chat = await web.chats.create()
    await chat.askLater('Go on', { enqueue: true })
    await held.reached
    return { worker, web, chat, held }
  }

  /** Shows events on a page until it is done. */
  async function view(page: Page, chat: Chat, options: EventsOptions, done: (event: ChatEvent) => boolean) {
    for await (const event of chat.events(options)) {
      page.show(event)
      if (done(event)) break
    }
  }

  it(`sees ${CHUNKS} chunks whole, none twice, though it leaves and joins again ${REJOINS} times (B83)`, async function () {
    this.timeout(60_000)
    const whole = words(CHUNKS)
    const { chat, held } = await beginAnswer(whole)
    const lengths = whole.split(' ').map((word) => word.length + 1)
    let page = newPage()
    let sent = 0
    let seenAtOnce = 0
    const textOf = (shown: Page) => [...shown.texts.values()].join('')
    for (let round = 0; round < REJOINS; round++) {
      const sending = (async () => {
        for (let step = 0; step < CHUNKS / REJOINS; step++) await held.step()
      })()
      const target = sent + Math.floor(Math.random() * (CHUNKS / REJOINS - 1))
      sent += CHUNKS / REJOINS
      const enough = lengths.slice(0, target).reduce((sum, length) => sum + length, 0) - 1
      if (round % 2 === 1) page = newPage()
      await view(page, chat, round % 2 === 1 || page.last === undefined ? {} : { after: page.last }, () => {
        const shown = textOf(page)
        if (!whole.startsWith(shown)) expect(shown).to.equal(whole.slice(0, shown.length))
        return shown.length >= enough
      })
      if (textOf(page).length > enough) seenAtOnce++
      await sending
    }
    held.release()
    await view(page, chat, { after: page.last }, ({ type }) => type === 'run.finished')
    expect(textOf(page)).to.equal(whole)
    expect(page.types).not.to.include('resync')
    expect(seenAtOnce).to.be.above(0)
    expect((await chat.messages()).at(-1)?.content).to.equal(whole)
  })

  it('who joins afterwards is told the last turn, or all, or nothing of the past', async () => {
    const { worker, chat, held } = await beginAnswer('One two three')
    held.release()
    await until('it is answered', () => chat.isComplete())
    await worker.chats.find(chat.id).then((same) => same.ask('And?'))
    const told = async (options: EventsOptions) => {
      const page = newPage()
      await view(page, chat, options, ({ type }) => type === 'run.finished')
      return [...page.texts.values()]
    }
    await until('it is given back', async () => !(await chat.running()))
    expect(await told({})).to.deep.equal(['And more.'])
    expect(await told({ history: 'all' })).to.deep.equal(['One two three', 'And more.'])
    expect(await told({ after: '0' })).to.deep.equal(['One two three'])
    expect(() => chat.events({ history: 'some' as 'all' })).to.throw(/history must be/)
  })

  it('sees the answer whole though Redis is flushed in the middle of it', async () => {
    const whole = words(60)
    const { chat, held } = await beginAnswer(whole)
    const page = newPage()
    const viewing = view(page, chat, {}, ({ type }) => type === 'run.finished')
    for (let step = 0; step < 20; step++) await held.step()
    await until('some of it is shown', () => [...page.texts.values()].join('').includes('word-9 '))
    await flushAll(bench.redis.url)
    const late = newPage()
    const lately = view(late, chat, {}, ({ type }) => type === 'run.finished')
    for (let step = 0; step < 20; step++) await held.step()
    held.release()
    await Promise.all([viewing, lately])
    const answer = (await chat.messages()).at(-1)
    for (const shown of [page, late]) expect([...shown.texts]).to.deep.equal([[answer?.id, whole]])
  })

  it('stops nothing by leaving; a stop from one who joined later is the last that is shown (B81)', async () => {
    const { chat, held } = await beginAnswer('One two three four five')
    const page = newPage()
    const viewing = view(page, chat, {}, ({ type }) => type === 'text.delta')
    for (const _ of [1, 2]) await held.step()
    await viewing
    const later = newPage()
    const watching = view(later, chat, {}, ({ type }) => type === 'run.cancelled')
    for (const _ of [1, 2]) await held.step()
    await until('the second sees all four words', () => [...later.texts.values()].join('') === 'One two three four')
    await chat.cancel()
    await watching
    held.release()
    await until('it is given back', async () => !(await chat.running()))
    const last = (await chat.messages()).at(-1)
    expect(last).to.include({ finishReason: 'cancelled', content: 'One two three four' })
    expect([...later.texts]).to.deep.equal([[last?.id, last?.content]])
    const after: ChatEvent['type'][] = []
    const rest = chat.events({ after: later.last })
    const first = rest.next().then(({ value }) => value !== undefined && after.push(value.type))
    await chat.queue('mark')
    await first
    expect(after).to.deep.equal(['queued'])
    await rest.return()
  })

  it('gets done from next() when its connection closes', async () => {
    const { web, chat, held } = await beginAnswer('One')
    const reader = chat.events({ history: 'none' })
    const waiting = reader.next()
    await reader.ready
    await web.close()
    expect(await waiting).to.deep.equal({ done: true, value: undefined })
    held.release()
  })
})

onEachDatabase('What viewers see of an answer while it is made', (kind) => {
  const bench = useBench(kind)

  const deltasOf = async (chat: Chat) =>
    ofType(await eventsOf(chat), 'text.delta')
      .map((event) => event.text)
      .join('')

  it('is every chunk, once, though each is broadcast again by hand', async () => {
    await bench.script([text('One two three')])
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    await chat.ask('Count', {}, (chunk) => chunk.broadcast())
    expect(await deltasOf(chat)).to.equal('One two three')
  })

  it('is only what is broadcast, once, where the agent says so', async () => {
    await bench.script([text('One two three', { thinking: 'Hm' })])
    const agent = defineAgent({ name: 'shy', broadcast: 'manual' })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.ask('Count', {}, (chunk) => {
      if (chunk.text.trim() !== 'two') for (const _ of [1, 2]) chunk.broadcast()
    })
    const events = await eventsOf(chat)
    expect(await deltasOf(chat)).to.equal('One three')
    expect(ofType(events, 'thinking.delta').map((event) => event.text)).to.deep.equal(['Hm'])
    expect(ofType(events, 'message.finished')[0]?.text).to.equal('One two three')
  })

  it('is nothing where the agent says so, and broadcasting is refused', async () => {
    await bench.script([text('One two three'), text('One two three')])
    const agent = defineAgent({ name: 'secret', broadcast: 'off' })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.ask('Count')
    expect(await deltasOf(chat)).to.equal('')
    const error = await rejectionOf(chat.ask('Count', {}, (chunk) => chunk.broadcast()))
    expect(error).to.be.instanceOf(ConfigurationError)
    expect((error as Error).message).to.include("broadcast: 'off'")
  })
})
