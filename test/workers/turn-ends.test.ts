import { expect } from 'chai'
import * as z from 'zod'
import { type Chat, defineAgent, defineTool, type TurnOutcome } from '../../src/index.ts'
import { gate, httpError, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'

onEachDatabase("A turn's end", (kind) => {
  const bench = useBench(kind, { claimTtlMs: 5_000 })
  beforeEach(function () {
    this.currentTest?.timeout(60_000)
  })
  let told: string[] = []
  beforeEach(() => {
    told = []
  })

  const sayOf = (outcome: TurnOutcome): string => {
    switch (outcome.kind) {
      case 'answered':
        return `${outcome.turn} answered: ${outcome.message.content}`
      case 'failed':
        return `${outcome.turn} failed: ${outcome.failure.code}`
      case 'cancelled':
        return `${outcome.turn} cancelled`
      default:
        return outcome satisfies never
    }
  }
  const refund = defineTool({
    name: 'refund',
    description: 'Refunds.',
    parameters: z.object({}),
    requiresApproval: true,
    execute: () => 'done',
  })
  const clerk = (onTurnEnd: (chat: Chat, outcome: TurnOutcome) => unknown) =>
    defineAgent({ name: 'clerk', retries: 0, tools: [refund], onTurnEnd })
  const note = clerk(async (chat, outcome) => {
    told.push(`${chat.owner} ${sayOf(outcome)}, ${(await chat.messages()).length} messages`)
  })

  async function ready(agent = note) {
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent, owner: 'ada' })
    return { mill, chat }
  }

  it('is told to the agent with the chat and the answer, once, and not before a parked turn goes on (E01)', async () => {
    await bench.script([toolCalls([{ name: 'refund', arguments: {} }]), text('Refunded.')])
    const { mill, chat } = await ready()
    await mill.startWorkers({ complete: 2, runTools: 0 }).ready()
    await chat.askLater('Refund it', { enqueue: true })
    await until('the chat waits', () => chat.awaitingApproval())
    expect(told).to.eql([])
    const [call] = await chat.pendingApprovals()
    await chat.approve(call?.toolCallId ?? '')
    await until('the turn is answered and given back', async () => (await chat.isComplete()) && !(await chat.running()))
    await chat.complete()
    await mill.jobs.complete.enqueue(chat)
    await until('the wish is gone', async () => (await mill.models.Chat.findByPk(chat.id))?.wantedAt === null)
    expect(told).to.eql(['ada 1 answered: Refunded., 4 messages'])
  })

  it('is told for each turn of a run, and after moves made one by one (E01)', async () => {
    const first = gate(text('one'))
    await bench.script([first, text('two'), text('three')])
    const { chat } = await ready()
    const asked = chat.ask('a')
    await first.reached
    await chat.queue('b', { steer: false })
    first.release()
    await asked
    await chat.askLater('c')
    await chat.step()
    await chat.step()
    expect(told).to.eql([
      'ada 1 answered: one, 2 messages',
      'ada 2 answered: two, 4 messages',
      'ada 3 answered: three, 6 messages',
    ])
  })

  it('is told when the turn failed for good, and again once it was tried again (E01)', async () => {
    await bench.script([httpError(401, 'no such key'), text('now')])
    const { chat } = await ready()
    await chat.ask('a').catch(() => {})
    expect(told).to.eql(['ada 1 failed: provider.authentication, 1 messages'])
    await chat.complete()
    expect(told.slice(1)).to.eql(['ada 1 answered: now, 2 messages'])
  })

  it('is not told while a retry is to come (E01)', async () => {
    await bench.script([httpError(503, 'busy')])
    const { mill, chat } = await ready()
    await mill.startWorkers({ complete: 1, runTools: 0 }).ready()
    await chat.askLater('a', { enqueue: true })
    await until('a retry is wanted', async () => {
      const row = await mill.models.Chat.findByPk(chat.id)
      return row !== null && row.claimedBy === null && (row.wantedAt?.getTime() ?? 0) > Date.now()
    })
    expect(told).to.eql([])
  })

  it('is told when the turn is cancelled (E01)', async () => {
    const held = gate(text('never'))
    await bench.script([held])
    const { chat } = await ready()
    const asked = chat.ask('a').catch((error: Error & { code?: string }) => error.code)
    await held.reached
    await chat.cancel()
    expect(await asked).to.equal('chat.cancelled')
    expect(told).to.eql(['ada 1 cancelled, 1 messages'])
  })

  it('is told again by the next process when the first died before it gave the chat back (E01)', async () => {
    await bench.script([text('one')])
    let calls = 0
    const dies = clerk(async () => {
      calls++
      // The claim is taken away while the hook runs, as if this process had been frozen past it.
      await mill.models.Chat.update({ claimedUntil: new Date(0) }, { where: { id: chat.id } })
    })
    const { mill, chat } = await ready(dies)
    const other = await bench.connect({ agents: [note] })
    await chat.askLater('a')
    await mill.jobs.complete.enqueue(chat)
    await chat.complete()
    expect(calls).to.equal(1)
    await other.startWorkers({ complete: 1, runTools: 0 }).ready()
    await until('it is told again', () => told.length > 0)
    await until('the chat is given back', async () => !(await chat.running()))
    expect(told).to.eql(['ada 1 answered: one, 2 messages'])
    expect(bench.model.requests).to.have.length(1)
  })

  it('stands although the hook throws, which is observed (E01)', async () => {
    await bench.script([text('one')])
    const throws = clerk(() => {
      throw new RangeError('no such webhook')
    })
    const troubles: string[] = []
    const mill = await bench.connect({
      agents: [throws],
      onObservation: (seen) =>
        seen.type === 'hook.trouble' ? troubles.push(`${seen.hook} ${seen.error?.name}`) : null,
    })
    const chat = await mill.chats.create({ agent: throws })
    expect((await chat.ask('a'))?.content).to.equal('one')
    expect(troubles).to.eql(['onTurnEnd RangeError'])
    expect(await chat.failure()).to.equal(null)
  })
})
