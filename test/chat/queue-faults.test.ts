import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import * as z from 'zod'
import { CancelledError, type Chat, defineAgent, defineTool } from '../../src/index.ts'
import { text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { beforeNext } from '../support/insides.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { useWorkerProcesses } from '../support/worker-processes.ts'
import { errorFrom } from '../tools/rows.ts'

const app = fileURLToPath(new URL('./apps/steering.ts', import.meta.url))
const round = () => toolCalls(['c1', 'c2', 'c3'].map((step) => ({ name: 'work', arguments: { step } })))
const spoken = async (chat: Chat) =>
  (await chat.messages()).map(({ role, content }) => (role === 'user' ? content : role))

onEachDatabase('Messages that come at a bad time', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 4_000 })
  const processes = useWorkerProcesses()
  beforeEach(function () {
    this.currentTest?.timeout(60_000)
  })
  const plain = defineAgent({ name: 'plain' })

  it('answers each of two messages sent together, in order, with one request at a time (B56)', async function () {
    this.timeout(90_000)
    await bench.script(({ messages }) => text(`answer to ${messages.at(-1)?.content}`, { delayMs: 60 }))
    const workers = await Promise.all([bench.connect({ agents: [plain] }), bench.connect({ agents: [plain] })])
    await Promise.all(workers.map((worker) => worker.startWorkers().ready()))
    const web = await Promise.all([bench.connect({ agents: [plain] }), bench.connect({ agents: [plain] })])
    for (let time = 0; time < 4; time++) {
      const begun = bench.model.requests.length
      const chat = await web[0]?.chats.create({ agent: plain })
      const same = await web[1]?.chats.find(chat?.id ?? '')
      if (chat === undefined || same === undefined) throw new Error('There is no chat')
      // The second comes before, while, or after the first is taken up.
      const first = chat.askLater('m1', { enqueue: true })
      if (time > 0) await until('the first is under way', () => chat.running())
      if (time > 1) await until('the model is asked', () => bench.model.requests.length > begun)
      if (time === 0) await first
      await Promise.all([first, same.askLater('m2', { enqueue: true })])
      await until('both are answered', async () => (await chat.isComplete()) && !(await chat.running()))

      const requests = bench.model.requests.slice(begun)
      for (const [at, request] of requests.entries()) {
        const before = requests[at - 1]
        if (before !== undefined) expect(request.startedAt).to.be.at.least(before.endedAt ?? Number.POSITIVE_INFINITY)
      }
      const users = requests.map(({ messages }) => messages.flatMap((m) => (m.role === 'user' ? [m.content] : [])))
      expect(users.at(-1)).to.eql(['m1', 'm2'])
      const said = await spoken(chat)
      const heard = said.flatMap((word, at) =>
        word === 'assistant' ? [said.slice(0, at).filter((other) => other !== 'assistant')] : [],
      )
      expect(heard, 'every answer comes from a request that held all users before it').to.eql(users)
      expect(said.at(-1)).to.equal('assistant')
    }
  })

  it('keeps a steering message that was read when the turn is cancelled, and answers it (B58)', async () => {
    await bench.script([round(), text('answer')])
    const ran: string[] = []
    const work = defineTool({
      name: 'work',
      description: 'Does one step.',
      parameters: z.object({ step: z.string() }),
      execute: async ({ step }) => {
        ran.push(step)
        if (step === 'c1') await web.queue('s2')
        return `did ${step}`
      },
    })
    const steered = defineAgent({ name: 'steered', tools: [work] })
    const worker = await bench.connect({ agents: [steered] })
    const chat = await worker.chats.create({ agent: steered })
    const web = await (await bench.connect({ agents: [steered] })).chats.find(chat.id)
    beforeNext(worker, 'takeQueued', () => web.cancel())
    expect(await errorFrom(() => chat.ask('question'))).to.be.instanceOf(CancelledError)
    expect((await web.queuedMessages()).map(({ content }) => content)).to.eql(['s2'])
    expect(await spoken(web)).to.eql(['question', 'assistant', 'tool', 'tool', 'tool'])

    await worker.startWorkers().ready()
    await until('it is answered', () => web.isComplete())
    expect(await spoken(web)).to.eql(['question', 'assistant', 'tool', 'tool', 'tool', 's2', 'assistant'])
    expect(ran).to.eql(['c1', 'c2', 'c3'])
    expect(bench.model.requests).to.have.length(2)
    expect(bench.model.requests.every(({ ended }) => ended === 'answered')).to.equal(true)
  })

  it('keeps a steering message that was read when its process is killed, and answers it (B58, E70)', async function () {
    this.timeout(120_000)
    const directory = await mkdtemp(join(tmpdir(), 'threadmill-steering-'))
    try {
      await bench.script([round(), text('answer')])
      const steered = defineAgent({ name: 'steered' })
      const web = await bench.connect({ agents: [steered] })
      const chat = await web.chats.create({ agent: steered })
      const env = { STEERING_DIRECTORY: directory }
      const first = await processes.start(app, bench.options(), { ...env, STEERING_DIES: 'yes' })
      await chat.askLater('question', { enqueue: true })
      const ran = () => readFile(join(directory, 'ran'), 'utf8').catch(() => '')
      await until('the first call runs', async () => (await ran()) !== '', 60_000)
      const queued = await chat.queue('s2')
      await writeFile(join(directory, 'go'), '')
      expect(await first.ended, 'killed by a signal').to.equal(null)
      expect((await chat.queuedMessages()).map(({ content }) => content)).to.eql(['s2'])
      expect((await chat.receipt(queued))?.status).to.equal('waiting')
      expect(await spoken(chat)).to.eql(['question', 'assistant', 'tool', 'tool', 'tool'])

      await processes.start(app, bench.options(), env)
      await until('another process answers it', () => chat.isComplete(), 60_000)
      expect(await spoken(chat)).to.eql(['question', 'assistant', 'tool', 'tool', 'tool', 's2', 'assistant'])
      expect(await chat.queuedMessages()).to.eql([])
      expect((await chat.receipt(queued))?.status).to.equal('delivered')
      expect(await ran()).to.equal('c1\nc2\nc3\n')
      expect(bench.model.requests).to.have.length(2)
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  })
})
