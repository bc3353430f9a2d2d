import { expect } from 'chai'
import { ArgumentError, type Chat, defineAgent, type HookDefinitions, type HookName } from '../../src/index.ts'
import { httpError, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { errorFrom } from '../tools/rows.ts'
import { resultsById, roles } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

onEachDatabase('Hooks', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })

  /** Hooks that write down what they were called with. */
  function noting(seen: string[]): HookDefinitions<Chat> {
    return {
      beforeRequest: (payload) => void seen.push(`beforeRequest ${(payload.messages as unknown[]).length}`),
      beforeMessage: () => void seen.push('beforeMessage'),
      afterMessage: async (message, chat) => {
        const stored = (await chat.messages()).some(({ id }) => id === message.id)
        seen.push(`afterMessage ${message.role} ${stored ? 'stored' : 'missing'}`)
      },
      beforeToolCall: ({ name }) => void seen.push(`beforeToolCall ${name}`),
      afterToolResult: (result, { name }) => void seen.push(`afterToolResult ${name} ${JSON.stringify(result)}`),
      afterToolProgress: ({ name }, { fraction }) => void seen.push(`afterToolProgress ${name} ${fraction}`),
      afterDequeue: (message, queued) =>
        void seen.push(`afterDequeue ${message.content} ${JSON.stringify(queued.owner)}`),
    }
  }

  it('of an agent are called by the worker, in order, with what is stored by then (S55, E30)', async () => {
    await bench.script([toolCalls([call('read', freshId())]), text('Alright.')])
    const seen: string[] = []
    const tool = recording('read', [], {}, async ({ chat, progress }) => {
      progress({ value: 1, total: 4 })
      await (await mill.chats.find(chat.id)).queue('And then?', { owner: { id: 7 }, wake: false })
      return { lines: 3 }
    })
    const agent = defineAgent({ name: freshName(), tools: [tool], hooks: noting(seen) })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.askLater('Go', { enqueue: true })
    await mill.startWorkers().ready()
    await until('the turn is answered', async () => (await chat.isComplete()) && !(await chat.running()))
    expect(seen).to.deep.equal([
      'beforeMessage',
      'beforeRequest 1',
      'afterMessage assistant stored',
      'beforeToolCall read',
      'afterToolProgress read 0.25',
      'afterToolResult read {"lines":3}',
      'beforeMessage',
      'afterMessage tool stored',
      'afterDequeue And then? {"id":7}',
      'beforeMessage',
      'beforeRequest 4',
      'afterMessage assistant stored',
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
    const mill = await bench.connect({ agents: [agent] })
    const [web, worker] = [await mill.chats.create({ agent }), [] as string[]]
    const run = await mill.chats.find(web.id)
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

  const throwing: readonly { readonly hook: HookName; readonly leaves: string; readonly runs: number }[] = [
    { hook: 'beforeMessage', leaves: 'user', runs: 0 },
    { hook: 'beforeRequest', leaves: 'user', runs: 0 },
    { hook: 'afterMessage', leaves: 'user assistant', runs: 0 },
    { hook: 'beforeToolCall', leaves: 'user assistant tool', runs: 0 },
    { hook: 'afterToolResult', leaves: 'user assistant tool', runs: 1 },
  ]
  for (const { hook, leaves, runs } of throwing) {
    it(`end the run where they throw: ${hook} leaves ${leaves}, and the next complete goes on (E30)`, async () => {
      const id = freshId()
      await bench.script([toolCalls([call('read', id)]), text('Done')])
      const ran: string[] = []
      const agent = defineAgent({ name: freshName(), tools: [recording('read', ran)] })
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
