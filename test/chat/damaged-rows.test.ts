import { expect } from 'chai'
import fc from 'fast-check'
import { type Chat, DamagedChatError, defineAgent, type Threadmill, ThreadmillError } from '../../src/index.ts'
import { type Reply, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { errorFrom } from '../tools/rows.ts'
import { damage, damageKinds, type Kind } from './support/damage.ts'
import { change, lastCall, resultsById } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

onEachDatabase('A chat whose rows are damaged', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })
  const full = process.env.THREADMILL_FULL === '1'
  const runs = kind.name === 'SQLite' ? (full ? 400 : 120) : 40

  const asking = (runs_: string[]) =>
    recording('ask_user', runs_, {}, (context) => context.ask({ message: 'Sure?', fields: [{ name: 'sure' }] }))

  async function millWith(script: Parameters<typeof bench.script>[0]) {
    await bench.script(script)
    const ran: string[] = []
    const agent = defineAgent({
      name: freshName(),
      retries: 0,
      tools: [recording('read', ran), recording('guarded', ran, { requiresApproval: true }), asking(ran)],
    })
    const mill = await bench.connect({ agents: [agent] })
    return { mill, agent, ran }
  }

  /** A chat with a round behind it, and a call that waits for a decision or an answer. */
  async function chatThatWaits(mill: Threadmill, agent: string, tool: 'guarded' | 'ask_user'): Promise<Chat> {
    const chat = await mill.chats.create({ agent, providerOptions: { seed: 1 }, inputs: null })
    await chat.ask(`Read, then ${tool}`)
    return chat
  }

  /** Reads once, then calls the tool that the question names; answers once that has its result. */
  const model: Reply = {
    kind: 'rules',
    make: ({ messages }) => {
      const question = messages.findLast(({ role }) => role === 'user')?.content
      const rounds = messages.filter(({ role, tool_calls }) => role === 'assistant' && tool_calls !== undefined).length
      const named = typeof question === 'string' ? /then (\w+)/.exec(question)?.[1] : undefined
      if (named === undefined || rounds > 1) return text('Done.')
      return toolCalls([call(rounds === 0 ? 'read' : named, freshId())])
    },
  }

  it(`ends its turn, or fails it with an error that names it, whatever the damage (${runs} cases) (E104, E105, E106)`, async function () {
    this.timeout(600_000)
    const { mill, agent } = await millWith(model)
    const other = await chatThatWaits(mill, agent.name, 'guarded')
    const ends = new Map<string, number>()
    const drawn = fc.record({
      tool: fc.constantFrom('guarded' as const, 'ask_user' as const),
      kinds: fc.uniqueArray(fc.constantFrom(...damageKinds), { minLength: 1, maxLength: 2 }),
      seed: fc.nat(1_000),
    })
    await fc.assert(
      fc.asyncProperty(drawn, async ({ tool, kinds, seed }) => {
        const chat = await chatThatWaits(mill, agent.name, tool)
        for (const one of kinds) await damage(mill, chat, other, one, seed)
        const end = await endOf(mill, chat.id)
        ends.set(end, (ends.get(end) ?? 0) + 1)
      }),
      { numRuns: runs, endOnFailure: true },
    )
    expect([...ends.keys()], JSON.stringify([...ends])).to.include.members(['answered', 'chat.damaged'])
    expect([...ends.keys()].filter((end) => end === 'error' || end.startsWith('Sequelize'))).to.deep.equal([])
  })

  /** Everything that an application may do with it: reading says something, and the turn comes to an end. */
  async function endOf(mill: Threadmill, id: string): Promise<string> {
    const chat = await mill.chats.find(id)
    await chat.messages()
    await mill.chats.list({ limit: 5 })
    const diagnosis = await chat.diagnosis()
    expect(diagnosis.why).to.be.a('string').that.is.not.empty
    await Promise.all([
      chat.waiting(),
      chat.pendingInputs(),
      chat.pendingApprovals(),
      chat.isComplete(),
      chat.failure(),
    ])
    const [pending] = await chat.pendingApprovals()
    const [question] = await chat.pendingInputs()
    try {
      if (pending !== undefined) await chat.approve(pending.id)
      if (question !== undefined) await chat.answer(question, { sure: 'yes' })
      await chat.complete()
      return (await chat.isComplete()) ? 'answered' : 'waits'
    } catch (error) {
      if (!(error instanceof ThreadmillError)) throw error
      if (error instanceof DamagedChatError) {
        expect(error.message).to.contain(id)
        expect((await (await mill.chats.find(id)).diagnosis()).why).to.be.a('string').that.is.not.empty
      }
      return error.code
    } finally {
      // Nobody is left holding it, and it can be removed.
      expect(await chat.running()).to.equal(false)
      await chat.delete()
    }
  }

  const stopping: readonly Kind[] = ['settings', 'inputs', 'transfer', 'pause']
  for (const one of stopping) {
    it(`in its ${one} fails its turn on a worker, once, says so, and keeps no other chat waiting (E104, E106)`, async () => {
      const { mill, agent } = await millWith(model)
      const chat = await chatThatWaits(mill, agent.name, 'ask_user')
      const [question] = await chat.pendingInputs()
      const sound = await mill.chats.create({ agent })
      await sound.askLater('Hello', { enqueue: true })
      if (question !== undefined) await chat.answer(question, { sure: 'yes' }, { wake: false })
      await damage(mill, chat, chat, one, 1)
      expect((await chat.diagnosis()).advice.act).to.equal('repair')
      await mill.jobs.complete.enqueue(chat.id)
      const pool = mill.startWorkers({ complete: 2 })
      const failure = await until('the failure', () => chat.failure())
      expect(failure).to.deep.include({ code: 'chat.damaged' })
      expect(failure.message).to.contain(chat.id)
      await until('the answer of the other chat', () => sound.isComplete())
      const { state, why, damage: found } = await chat.diagnosis()
      expect(state).to.equal('failed')
      expect(why).to.contain("can't be read")
      expect(found).to.have.length.greaterThan(0)
      await pool.close()
    })
  }

  it('in why it failed keeps no worker from starting, and is tried again as any (E104, E106)', async () => {
    const { mill, agent } = await millWith(text('Hello.'))
    const chat = await mill.chats.create({ agent })
    await chat.askLater('Hi')
    // On SQLite a text that is no JSON.
    await damage(mill, chat, chat, 'failure', 4)
    expect((await chat.failure())?.message).to.contain('can not be read')
    expect((await chat.diagnosis()).state).to.equal('failed')
    // Put off for an hour, unless the start of a worker that has its agent lifts that.
    const sound = await mill.chats.create({ agent })
    await sound.askLater('Hello', { enqueue: true })
    await change(mill.models.Chat, sound.id, { put_off: 3, wanted_at: new Date(Date.now() + 3_600_000) })
    const pool = mill.startWorkers({ complete: 1 })
    await until('the answer of the other chat', () => sound.isComplete())
    await mill.jobs.complete.enqueue(chat.id)
    await until('its own answer', () => chat.isComplete())
    await pool.close()
  })

  if (kind.name === 'SQLite') {
    it('in the arguments of a call does not run it with others: the model is told (E104)', async () => {
      const { mill, agent, ran } = await millWith(model)
      const chat = await chatThatWaits(mill, agent.name, 'guarded')
      const waiting = await lastCall(chat)
      await damage(mill, chat, chat, 'arguments', 3)
      expect(await lastCall(chat)).to.deep.include({ arguments: {}, malformedArguments: '{' })
      await chat.approve(waiting.id)
      expect((await chat.complete())?.content).to.equal('Done.')
      expect((await resultsById(chat))[waiting.toolCallId]?.content).to.contain('can not be read')
      expect(ran).to.deep.equal(['read'])
    })
  }

  it('in its settings runs again once they are set anew (E104)', async () => {
    const { mill, agent } = await millWith(text('Hello.'))
    const chat = await mill.chats.create({ agent })
    await damage(mill, chat, chat, 'settings', 2)
    expect(await errorFrom(() => chat.ask('Hi'))).to.be.instanceOf(DamagedChatError)
    const found = await mill.chats.find(chat.id)
    await found.withTemperature(0.5).save()
    expect((await found.complete())?.content).to.equal('Hello.')
  })

  it('in what a call waits for goes on once the call is denied (E104)', async () => {
    const { mill, agent, ran } = await millWith(model)
    const chat = await chatThatWaits(mill, agent.name, 'ask_user')
    const waiting = await lastCall(chat)
    await damage(mill, chat, chat, 'pause', 1)
    expect(await errorFrom(() => chat.complete())).to.be.instanceOf(DamagedChatError)
    await chat.deny(waiting.id)
    expect((await chat.complete())?.content).to.equal('Done.')
    expect((await resultsById(chat))[waiting.toolCallId]?.outcome).to.equal('denied')
    expect(ran).to.deep.equal(['read', 'ask_user'])
  })

  it('in the places of its messages says so, and stores nothing (E105)', async () => {
    const { mill, agent } = await millWith(text('Hello.'))
    const chat = await mill.chats.create({ agent })
    await chat.ask('Hi')
    await damage(mill, chat, chat, 'next position', 0)
    const error = await errorFrom(() => chat.ask('Again'))
    expect(error).to.be.instanceOf(DamagedChatError).with.property('message').that.contains('next_position')
    expect(await chat.messages()).to.have.length(2)
  })
})
