import { setTimeout as wait } from 'node:timers/promises'
import { expect } from 'chai'
import * as z from 'zod'
import { type Chat, defineAgent, defineTool, type Threadmill } from '../../src/index.ts'
import { text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { useLinks } from './faults/support/links.ts'

const LIMIT_MS = 120_000
/** What the report allows a caller to wait while Redis is down. */
const ANSWER_MS = 3_000

const agent = defineAgent({
  name: 'teller',
  retries: 0,
  tools: [
    defineTool({
      name: 'pay',
      description: 'Pays.',
      parameters: z.object({}),
      requiresApproval: true,
      execute: () => 'paid',
    }),
    defineTool({
      name: 'choose',
      description: 'Asks.',
      parameters: z.object({}),
      execute: (_args, context) => context.ask({ message: 'Which?', fields: [{ name: 'of' }] }),
    }),
  ],
})

/** What a chat is like when it is asked for: answered, waiting for an approval or for an answer, or with a message in its queue. */
type Condition = 'idle' | 'parked' | 'asking' | 'queued'

/** What an application's request does, by name, and to what kind of chat. */
const requests: Record<string, readonly [Condition, (chat: Chat, mill: Threadmill) => Promise<unknown>]> = {
  'askLater, enqueued': ['idle', (chat) => chat.askLater('more', { enqueue: true })],
  post: ['idle', (chat) => chat.post('more')],
  'post that interrupts': ['parked', (chat) => chat.post('stop', { whileRunning: 'interrupt' })],
  queue: ['idle', (chat) => chat.queue('more')],
  unqueue: ['queued', async (chat) => chat.unqueue((await chat.queuedMessages())[0]?.id ?? '')],
  approve: ['parked', async (chat) => chat.approve((await chat.pendingApprovals())[0]?.id ?? '')],
  deny: ['parked', async (chat) => chat.deny((await chat.pendingApprovals())[0]?.id ?? '')],
  answer: ['asking', async (chat) => chat.answer((await chat.pendingInputs())[0]?.id ?? '', { of: 'it' })],
  cancel: ['parked', (chat) => chat.cancel()],
  enqueue: ['idle', (chat, mill) => mill.jobs.complete.enqueue(chat)],
  'enqueue for later': ['idle', (chat, mill) => mill.jobs.complete.enqueue(chat, { delayMs: 60_000 })],
  regenerate: ['idle', (chat) => chat.regenerate()],
  fork: ['idle', (chat, mill) => mill.chats.fork(chat)],
  delete: ['idle', (chat) => chat.delete()],
  diagnosis: ['parked', (chat) => chat.diagnosis()],
  'a turn run in the request': ['idle', (chat) => chat.ask('now')],
}

async function asked(mill: Threadmill, question: string): Promise<Chat> {
  const chat = await mill.chats.create({ agent })
  await chat.ask(question)
  return chat
}

onEachDatabase('A request', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 10_000 })
  const links = useLinks(bench)

  for (const [name, fault] of [
    ['refuses connections', 'cut'],
    ['is silent', 'hold'],
  ] as const) {
    it(`of every kind is answered within 3 s while Redis ${name}, and what it wrote is there (B48, E155)`, async () => {
      await bench.script(({ messages }) => {
        const asked = messages.findLast(({ role }) => role === 'user')?.content
        if (asked === 'pay' || asked === 'choose') return toolCalls([{ name: asked, arguments: {} }])
        return text('answered')
      })
      const { redis, options } = await links()
      const mill = await bench.connect({ ...options, agents: [agent] })
      const made: Record<Condition, () => Promise<Chat>> = {
        idle: () => asked(mill, 'hi'),
        parked: () => asked(mill, 'pay'),
        asking: () => asked(mill, 'choose'),
        queued: async () => {
          const chat = await mill.chats.create({ agent })
          await chat.queue('waits', { wake: false })
          return chat
        },
      }
      const chats = new Map<string, Chat>()
      for (const [verb, [condition]] of Object.entries(requests)) chats.set(verb, await made[condition]())
      redis[fault]()
      const slow: string[] = []
      const of = (verb: string) => {
        const chat = chats.get(verb)
        if (chat === undefined) throw new Error(`There is no request ${verb}`)
        return chat
      }
      const all = Object.entries(requests).map(async ([verb, [, act]]) => {
        const answered = act(of(verb), mill).then(() => true)
        if (!(await Promise.race([answered, wait(ANSWER_MS, false, { ref: false })]))) slow.push(verb)
      })
      await Promise.all(all)
      expect(slow).to.eql([])
      const said = async (chat: Chat) => (await chat.messages()).at(-1)?.content
      expect(await said(of('askLater, enqueued'))).to.equal('more')
      expect(await said(of('post'))).to.equal('more')
      expect((await of('queue').queuedMessages()).map(({ content }) => content)).to.eql(['more'])
      expect(await of('unqueue').queuedMessages()).to.eql([])
      expect(await of('approve').pendingApprovals()).to.eql([])
      expect(await of('answer').pendingInputs()).to.eql([])
      expect(await of('cancel').cancelled()).to.equal(true)
      expect(await said(of('a turn run in the request'))).to.equal('answered')
      redis.mend()
    }).timeout(LIMIT_MS)
  }
})
