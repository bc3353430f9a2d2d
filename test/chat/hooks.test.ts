import { expect } from 'chai'
import * as z from 'zod'
import {
  ArgumentError,
  type Chat,
  defineAgent,
  defineTool,
  type HookDefinitions,
  type HookName,
  type ModelClient,
  openAiClient,
  type Threadmill,
  type Tool,
} from '../../src/index.ts'
import { httpError, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { errorFrom } from '../tools/rows.ts'
import { chatRow, resultsById, roles } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

onEachDatabase('Hooks', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })

  /** Hooks that write down what they were called with; `mills` is the connection to look with. */
  function noting(seen: string[], mills: Threadmill[]): HookDefinitions<Chat> {
    return {
      beforeRequest: (payload) => void seen.push(`beforeRequest ${(payload.messages as unknown[]).length}`),
      beforeMessage: () => void seen.push('beforeMessage'),
      afterMessage: async (message, chat) => {
        const stored = (await chat.messages()).some(({ id }) => id === message.id)
        const usages = await mills[0]?.models.Usage.findAll({ where: { messageId: message.id } })
        const paid = (usages ?? []).map(({ status }) => `, usage ${status}`).join('')
        seen.push(`afterMessage ${message.role} ${stored ? 'stored' : 'missing'}${paid}`)
      },
      beforeToolCall: ({ name }) => void seen.push(`beforeToolCall ${name}`),
      afterToolResult: (result, { name }) => void seen.push(`afterToolResult ${name} ${JSON.stringify(result)}`),
      afterToolProgress: async ({ name }, { fraction }, chat) => {
        await chat.running()
        seen.push(`afterToolProgress ${name} ${fraction}`)
      },
      afterDequeue: (message, queued) =>
        void seen.push(`afterDequeue ${message.content} ${JSON.stringify(queued.owner)}`),
    }
  }

  /** The configured client, writing down what comes of an answer. */
  function noticing(seen: string[]): ModelClient {
    const client = openAiClient({ apiKey: 'key', baseURL: bench.model.url })
    return {
      ...client,
      attempt: (request, options) =>
        client.attempt(request, {
          ...options,
          onProgress: (progress) => {
            if (progress.type === 'text') seen.push(`chunk ${progress.text}`)
            return options.onProgress(progress)
          },
        }),
    }
  }

  it('of an agent are called by the worker, in order, with what is stored by then (S55, E30)', async () => {
    await bench.script([
      toolCalls([call('read', freshId())], { text: 'I look.', chunks: 1 }),
      text('Alright.', { chunks: 2 }),
    ])
    const seen: string[] = []
    const tool = recording('read', [], {}, async ({ chat, progress }) => {
      progress({ value: 1, total: 4 })
      progress({ value: 2, total: 4 })
      await (await mill.chats.find(chat.id)).queue('And then?', { owner: { id: 7 }, wake: false })
      return { lines: 3 }
    })
    const mills: Threadmill[] = []
    const hooks = noting(seen, mills)
    const agent = defineAgent({ name: freshName(), client: noticing(seen), tools: [tool], hooks })
    const mill = await bench.connect({ agents: [agent] })
    mills.push(mill)
    const chat = await mill.chats.create({ agent })
    await chat.askLater('Go', { enqueue: true })
    await mill.startWorkers().ready()
    await until('the turn is answered', async () => (await chat.isComplete()) && !(await chat.running()))
    expect(seen).to.deep.equal([
      'beforeMessage',
      'beforeRequest 1',
      'chunk I look.',
      'afterMessage assistant stored, usage succeeded',
      'beforeToolCall read',
      'afterToolProgress read 0.25',
      'afterToolProgress read 0.5',
      'afterToolResult read {"lines":3}',
      'beforeMessage',
      'afterMessage tool stored',
      'afterDequeue And then? {"id":7}',
      'beforeMessage',
      'beforeRequest 4',
      'chunk Alri',
      'chunk ght.',
      'afterMessage assistant stored, usage succeeded',
    ])
  })

  it("of a chat object come after the agent's, in the order given, for its own runs; reload keeps them (S104)", async () => {
    await bench.script([text('One'), text('Two')])
    const seen: string[] = []
    const agent = defineAgent({
      name: freshName(),
      hooks: { afterMessage: [() => void seen.push('agent 1'), () => void seen.push('agent 2')] },
    })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    chat.afterMessage((_message, of) => void seen.push(of === chat ? 'this chat' : 'another'))
    chat.afterMessage(() => void seen.push('last'))
    await (await chat.reload()).ask('Go')
    expect(seen).to.deep.equal(['agent 1', 'agent 2', 'this chat', 'last'])
    seen.length = 0
    await (await mill.chats.find(chat.id)).ask('Again')
    expect(seen).to.deep.equal(['agent 1', 'agent 2'])
  })

  it('of queueing and unqueueing are called where that was done, of taking where the chat is run (S58)', async () => {
    await bench.script([text('One')])
    const agent = defineAgent({ name: freshName() })
    const [one, other] = [await bench.connect({ agents: [agent] }), await bench.connect({ agents: [agent] })]
    const [web, worker] = [await one.chats.create({ agent }), [] as string[]]
    const run = await other.chats.find(web.id)
    const seen: string[] = []
    web.afterQueue((queued) => void seen.push(`queued ${queued.content}`))
    web.afterDequeue((message) => void seen.push(`dequeued ${message.content}`))
    web.afterUnqueue((queued) => void seen.push(`unqueued ${queued.content}`))
    run.afterQueue(() => void worker.push('queued'))
    run.afterDequeue((message, queued) => void worker.push(`dequeued ${message.content} ${queued.content}`))
    await web.queue('first')
    await web.unqueue(await web.queue('second'))
    expect(await web.unqueue('nothing')).to.equal(false)
    await run.complete()
    expect(seen).to.deep.equal(['queued first', 'queued second', 'unqueued second'])
    expect(worker).to.deep.equal(['dequeued first first'])
  })

  it("of an agent are called for the queue in the process that did it: the web's or the worker's (S58)", async () => {
    await bench.script([text('One')])
    const name = freshName()
    const told: string[] = []
    const process = (of: string) => {
      const tell = (what: string) => () => void told.push(`${of} ${what}`)
      const hooks = { afterQueue: tell('queued'), afterDequeue: tell('dequeued'), afterUnqueue: tell('unqueued') }
      return bench.connect({ agents: [defineAgent({ name, hooks })] })
    }
    const [web, worker] = [await process('web'), await process('worker')]
    await worker.startWorkers().ready()
    const chat = await web.chats.create({ agent: name })
    await chat.unqueue(await chat.queue('second thoughts', { wake: false }))
    await chat.queue('first')
    await until('it is answered', async () => (await chat.isComplete()) && !(await chat.running()))
    expect(told).to.deep.equal(['web queued', 'web unqueued', 'web queued', 'worker dequeued'])
  })

  it('of asking tell of each message that was queued before (S52, S55)', async () => {
    await bench.script([text('Both')])
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    const seen: string[] = []
    chat.afterDequeue((message, queued) => void seen.push(`${message.role} ${message.content} ${queued.steer}`))
    await chat.queue('first', { steer: false })
    await chat.ask('second')
    expect(seen).to.deep.equal(['user first false'])
  })

  it('may change what is sent, once for all attempts at it, and what render shows (S86, E31)', async () => {
    await bench.script([httpError(500, 'busy'), text('Fine')])
    let calls = 0
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    chat.beforeRequest((payload) => {
      calls++
      payload.seed = 7
    })
    await chat.withInstructions('Be brief.').askLater('Go')
    chat.withInstructions('Be kind.').withTemperature(0.5)
    const rendered = await chat.render()
    expect(rendered).to.deep.include({ seed: 7, temperature: 0.5, model: 'test-model' })
    expect(rendered.messages).to.deep.equal([
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'Go' },
    ])
    expect((await chat.messages())[0]?.content).to.equal('Be brief.')
    expect(bench.model.requests).to.have.length(0)
    calls = 0
    await chat.complete()
    expect(calls).to.equal(1)
    expect(bench.model.requests.map(({ body }) => (body as { seed?: number }).seed)).to.deep.equal([7, 7])
  })

  it('of progress are told of a task too, each time it is looked at (S99)', async () => {
    await bench.script([toolCalls([call('export', freshId())]), text('Done')])
    const states = [null, { rows: 7 }]
    const long = defineTool({
      name: 'export',
      description: 'Takes long.',
      parameters: z.object({}),
      execute: (_given, { task }) => task({ id: 'job', pollMs: 60_000, message: 'begun' }),
      resume: (_task, { task }) => states.shift() ?? task({ id: 'job', pollMs: 60_000, message: 'at work' }),
    })
    const agent = defineAgent({ name: freshName(), tools: [long] })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    const seen: unknown[] = []
    chat.beforeToolCall(({ name }) => void seen.push(name))
    chat.afterToolProgress((_call, { message, fraction }) => void seen.push([message, fraction]))
    chat.afterToolResult((result) => void seen.push(result))
    await chat.ask('Go')
    await chat.complete()
    await chat.complete()
    const begun = ['export', ['begun', null]]
    expect(seen).to.deep.equal([...begun, 'export', ['at work', null], 'export', { rows: 7 }])
    expect(await roles(chat)).to.equal('user assistant tool assistant')
  })

  const throwing: readonly { readonly hook: HookName; readonly leaves: string; readonly runs: number }[] = [
    { hook: 'beforeMessage', leaves: 'user', runs: 0 },
    { hook: 'beforeRequest', leaves: 'user', runs: 0 },
    { hook: 'afterMessage', leaves: 'user assistant', runs: 0 },
    { hook: 'beforeToolCall', leaves: 'user assistant tool', runs: 0 },
    { hook: 'afterToolProgress', leaves: 'user assistant tool', runs: 1 },
    { hook: 'afterToolResult', leaves: 'user assistant tool', runs: 1 },
  ]
  for (const { hook, leaves, runs } of throwing) {
    it(`end the run where they throw: ${hook} leaves ${leaves}, and the next complete goes on (E30)`, async () => {
      const id = freshId()
      await bench.script([toolCalls([call('read', id)]), text('Done')])
      const ran: string[] = []
      const agent = defineAgent({ name: freshName(), tools: [reporting(ran)] })
      const mill = await bench.connect({ agents: [agent] })
      const chat = await mill.chats.create({ agent })
      let broken = true
      chat[hook](() => {
        if (broken) throw new RangeError('a bug in a hook')
      })
      expect(await errorFrom(() => chat.ask('Go'))).to.be.instanceOf(RangeError)
      expect(await roles(chat)).to.equal(leaves)
      expect(ran).to.have.length(runs)
      expect(await chat.running()).to.equal(false)
      broken = false
      await chat.complete()
      expect(await roles(chat)).to.equal('user assistant tool assistant')
      expect(ran.length).to.equal(hook === 'beforeToolCall' ? 0 : 1)
      expect((await resultsById(chat))[id]?.outcome).to.equal(hook === 'beforeToolCall' ? 'interrupted' : 'succeeded')
      expect(bench.model.requests).to.have.length(2)
    })
  }

  it('end the run where they throw: afterDequeue leaves what was taken, which is answered then (S55, E30)', async () => {
    await bench.script([text('One'), text('Two')])
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    let broken = true
    chat.afterDequeue(() => {
      if (broken) throw new RangeError('a bug in a hook')
    })
    await chat.queue('taken by a run', { wake: false })
    expect(await errorFrom(() => chat.complete())).to.be.instanceOf(RangeError)
    expect([await roles(chat), (await chat.queuedMessages()).length]).to.deep.equal(['user', 0])
    await chat.queue('taken by asking', { wake: false })
    expect(await errorFrom(() => chat.ask('Go'))).to.be.instanceOf(RangeError)
    expect([await roles(chat), (await chat.queuedMessages()).length]).to.deep.equal(['user user user', 0])
    broken = false
    await chat.complete()
    expect(await roles(chat)).to.equal('user user user assistant')
    expect(bench.model.requests).to.have.length(1)
  })

  it('of queueing throw out of what was called, which is done by then (E30)', async () => {
    await bench.script([text('One')])
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    const broken = () => {
      throw new RangeError('a bug in a hook')
    }
    chat.afterQueue(broken).afterUnqueue(broken)
    for (const words of ['first', 'second']) {
      expect(await errorFrom(() => chat.queue(words, { wake: false }))).to.be.instanceOf(RangeError)
    }
    const [first, ...more] = await chat.queuedMessages()
    expect([first?.content, more.length]).to.deep.equal(['first', 1])
    expect(await errorFrom(() => chat.unqueue(first?.id ?? ''))).to.be.instanceOf(RangeError)
    expect((await chat.queuedMessages()).map(({ content }) => content)).to.deep.equal(['second'])
    await chat.complete()
    expect(await roles(chat)).to.equal('user assistant')
  })

  it('that throw in a worker fail the turn, which is not tried again by itself (E30)', async () => {
    await bench.script([text('One')])
    let calls = 0
    const agent = defineAgent({
      name: freshName(),
      hooks: {
        beforeMessage: () => {
          if (++calls === 1) throw new RangeError('a bug in a hook')
        },
      },
    })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.askLater('Go', { enqueue: true })
    await mill.startWorkers().ready()
    await until('the turn has failed', async () => (await chat.failure()) !== null && !(await chat.running()))
    expect([await roles(chat), (await chatRow(mill, chat)).wantedAt, calls]).to.deep.equal(['user', null, 1])
    await chat.complete()
    expect([await roles(chat), await chat.failure(), calls]).to.deep.equal(['user assistant', null, 2])
    expect(bench.model.requests).to.have.length(1)
  })

  it('must be functions', async () => {
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    expect(await errorFrom(() => chat.afterMessage('no' as never))).to.be.instanceOf(ArgumentError)
    const wrong = () => defineAgent({ name: 'any', hooks: { afterMessage: 7 as never } })
    expect(wrong).to.throw(ArgumentError, /hooks\.afterMessage must be a function/)
    expect(() => defineAgent({ name: 'any', hooks: { afterwards: () => {} } as never })).to.throw(ArgumentError)
  })

  it('are given messages one by one by each and by iteration, in their order', async () => {
    await bench.script([text('One')])
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    await chat.ask('Go')
    const seen: (string | null)[] = []
    for await (const message of chat) seen.push(message.content)
    for await (const message of chat.each()) seen.push(message.role)
    expect(await chat.each((message) => void seen.push(message.id.length > 0 ? 'id' : null))).to.equal(chat)
    expect(seen).to.deep.equal(['Go', 'One', 'user', 'assistant', 'id', 'id'])
  })
})

/** A tool that says how far it is and does not wait for anyone to hear it. */
function reporting(ran: string[]): Tool {
  return recording('read', ran, {}, ({ progress }) => {
    progress({ message: 'reading' })
    return 'read done'
  })
}
