import { expect } from 'chai'
import { v7 as uuid } from 'uuid'
import { userMessage } from '../../models/new-message.ts'
import { readQueue } from '../../models/transcript.ts'
import { takeQueued } from '../../models/turns.ts'
import {
  ArgumentError,
  CancelledError,
  type Chat,
  ChatRunningError,
  type ConnectOptions,
  defineAgent,
  type LiveEvent,
} from '../../src/index.ts'
import { gate, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { insidesOf } from '../support/insides.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { deferred, errorFrom } from '../tools/rows.ts'
import { abandon, chatRow, lastCall, lastCalls, roles, usageRows } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

onEachDatabase('A chat whose question is asked again', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000, sweepEveryMs: 100 })

  async function setUp(
    replies: Parameters<typeof bench.script>[0],
    work?: () => unknown,
    options: ConnectOptions = {},
  ) {
    await bench.script(replies)
    const runs: string[] = []
    const told: string[] = []
    const tools = [
      recording('look', runs, {}, ({ signal }) =>
        work === undefined ? 'seen' : Promise.race([work(), ended(signal)]),
      ),
      recording('next', runs),
      recording('wipe', runs, { requiresApproval: true }),
    ]
    const onTurnEnd = (_: Chat, { kind }: { readonly kind: string }) => void told.push(kind)
    const agent = defineAgent({ name: freshName(), tools, retries: 0, onTurnEnd })
    const connected = { agents: [agent], ...options }
    const mill = await bench.connect(connected)
    return { mill, agent, options: connected, chat: await mill.chats.create({ agent }), runs, told }
  }
  const ended = (signal: AbortSignal) =>
    new Promise<string>((resolve) => signal.addEventListener('abort', () => resolve('stopped')))
  const contents = async (chat: Chat) => (await chat.messages()).map(({ content }) => content)
  const questions = (at: number) =>
    bench.model.requests[at]?.body.messages.flatMap(({ role, content }) => (role === 'user' ? [content] : []))

  it('forgets what came behind it, keeps its id and place, and is answered anew (E55)', async () => {
    const { mill, chat, told } = await setUp([
      text('One'),
      toolCalls([call('look', freshId())]),
      text('Two'),
      text('Three'),
      text('Two, better'),
    ])
    await chat.withInstructions('Be brief.').ask('First')
    await chat.ask('Second')
    await chat.ask('Third')
    const before = await chat.messages()
    const second = before.find(({ content }) => content === 'Second')
    const turn = (await chatRow(mill, chat)).turn
    await chat.edit(second?.id ?? '', 'Second, please')
    expect(await contents(chat)).to.deep.equal(['Be brief.', 'First', 'One', 'Second, please'])
    const edited = (await chat.messages()).at(-1)
    expect([edited?.id, edited?.position]).to.deep.equal([second?.id, second?.position])
    expect(await mill.models.ToolCall.count({ where: { chatId: chat.id } })).to.equal(0)
    expect(await chat.isComplete()).to.equal(false)
    const row = await chatRow(mill, chat)
    expect([row.turn, row.wantedAt, row.rounds]).to.deep.equal([turn + 1, null, 0])
    const usages = await usageRows(mill, chat)
    expect(usages.map(({ messageId }) => messageId !== null)).to.deep.equal([true, false, false, false])

    expect((await chat.complete())?.content).to.equal('Two, better')
    expect(questions(4)).to.deep.equal(['First', 'Second, please'])
    expect(told).to.deep.equal(['answered', 'answered', 'answered', 'answered'])
    expect((await usageRows(mill, chat)).length).to.equal(5)
  })

  it('is asked as it is by regenerate: the last question, or the one that an answer came after (E55)', async () => {
    const { chat } = await setUp([text('One'), text('Two'), text('Two again'), text('One again')])
    await chat.ask('First')
    await chat.ask('Second')
    await (await chat.regenerate()).complete()
    expect(await contents(chat)).to.deep.equal(['First', 'One', 'Second', 'Two again'])
    const [, one] = await chat.messages()
    await (await chat.regenerate({ at: one?.id })).complete()
    expect(await contents(chat)).to.deep.equal(['First', 'One again'])
    expect(questions(2)).to.deep.equal(['First', 'Second'])
    expect(questions(3)).to.deep.equal(['First'])
  })

  it('refuses what is no question of the chat, and changes nothing (E55)', async () => {
    const { mill, chat } = await setUp([text('One')])
    const empty = await mill.chats.create()
    expect(await errorFrom(() => empty.regenerate())).to.be.instanceOf(ArgumentError)
    await chat.ask('First')
    const elsewhere = await mill.chats.create()
    await elsewhere.addMessage({ role: 'user', content: 'Other' })
    const [question, answer] = await chat.messages()
    const [other] = await elsewhere.messages()
    const before = [await chat.messages(), (await chatRow(mill, chat)).turn]
    for (const act of [
      () => chat.edit(answer?.id ?? '', 'x'),
      () => chat.edit(other?.id ?? '', 'x'),
      () => chat.edit('no such id', 'x'),
      () => chat.edit(question?.id ?? '', ''),
      () => chat.edit(question?.id ?? '', 'x', { waitMs: -1 }),
      () => chat.regenerate({ at: other?.id }),
    ]) {
      const error = await errorFrom(act)
      expect(error).to.be.instanceOf(ArgumentError).and.have.property('message').that.includes(chat.id)
    }
    expect([await chat.messages(), (await chatRow(mill, chat)).turn]).to.deep.equal(before)
  })

  it('cancels a parked turn first, and a decision that comes late is refused (E55)', async () => {
    const { mill, chat, runs, told } = await setUp([toolCalls([call('wipe', freshId())]), text('Fine')])
    await chat.ask('Wipe it')
    const open = await lastCall(chat)
    const [question] = await chat.messages()
    await chat.edit(question?.id ?? '', 'Leave it')
    expect(told).to.deep.equal(['cancelled'])
    expect(await roles(chat)).to.equal('user')
    for (const act of [() => chat.approve(open), () => chat.deny(open), () => chat.approve(open.toolCallId)]) {
      expect(await errorFrom(act)).to.be.instanceOf(ArgumentError)
    }
    expect((await chatRow(mill, chat)).wantedAt).to.equal(null)
    expect((await chat.complete())?.content).to.equal('Fine')
    expect(runs).to.deep.equal([])
    expect(told).to.deep.equal(['cancelled', 'answered'])
  })

  it('has a worker cancel a parked turn whose agent is elsewhere, and answer the new question (E55)', async () => {
    const { chat, options, told } = await setUp([toolCalls([call('wipe', freshId())]), text('Fine')])
    await chat.ask('Wipe it')
    const [question] = await chat.messages()
    const web = await (await bench.connect({})).chats.find(chat.id)
    const refused = await errorFrom(() => web.edit(question?.id ?? '', 'Leave it', { waitMs: 0 }))
    expect(refused).to.be.instanceOf(ChatRunningError)
    expect(await roles(web)).to.equal('user assistant')
    await (await bench.connect(options)).startWorkers().ready()
    await web.edit(question?.id ?? '', 'Leave it', { enqueue: true })
    await until('it is answered', () => web.isComplete())
    expect(await contents(web)).to.deep.equal(['Leave it', 'Fine'])
    expect(told).to.deep.equal(['cancelled', 'answered'])
  })

  it('keeps results of earlier rounds (E55)', async () => {
    const { chat, runs } = await setUp([toolCalls([call('wipe', freshId())]), text('Two'), text('Two again')])
    await chat.askLater('First')
    await chat.step()
    // Abandoned: its result is written behind the question that comes next.
    await chat.addMessage({ role: 'user', content: 'Second' })
    await chat.complete()
    expect(await roles(chat)).to.equal('user assistant user tool assistant')
    const second = (await chat.messages())[2]
    await chat.edit(second?.id ?? '', 'Second again')
    expect(await roles(chat)).to.equal('user assistant user tool')
    expect((await lastCall(chat)).resultId).to.equal((await chat.messages()).at(-1)?.id)
    await chat.complete()
    expect(await contents(chat)).to.include('Two again')
    expect(runs).to.deep.equal([])
  })

  it('keeps a summary of what came before, and no other (E55)', async () => {
    const { chat } = await setUp([text('One'), text('Two'), text('Short'), text('Two again'), text('Anew')])
    await chat.ask('First: tell me everything about the number one, please, at length')
    await chat.ask('Second')
    await chat.compact({ keep: 2 })
    const [first, , second] = await chat.messages()
    await chat.edit(second?.id ?? '', 'Second again')
    await chat.complete()
    expect(JSON.stringify(bench.model.requests[3]?.body.messages))
      .to.include('Short')
      .and.include('Second again')
      .and.not.include('First:')
    await chat.edit(first?.id ?? '', 'Anew')
    expect(await contents(chat)).to.deep.equal(['Anew'])
    await chat.complete()
    expect(JSON.stringify(bench.model.requests[4]?.body.messages)).not.to.include('Short')
  })

  it('ends the turn of another process in the middle of a tool before anything goes (E56)', async () => {
    const { mill, chat, options, runs, told } = await setUp(
      [toolCalls([call('look', freshId()), call('next', freshId())]), text('Fine')],
      () => deferred<string>().promise,
    )
    await chat.askLater('Look', { enqueue: true })
    const worker = await bench.connect(options)
    await worker.startWorkers().ready()
    await until('the tool runs', () => runs.includes('look'))
    const [question] = await chat.messages()
    const web = await (await bench.connect({})).chats.find(chat.id)
    const late = await lastCalls(chat)
    await web.edit(question?.id ?? '', 'Do not look', { enqueue: true })
    expect(await mill.models.ToolCall.count({ where: { chatId: chat.id } })).to.equal(0)
    await until('it is answered and given back', async () => (await web.isComplete()) && !(await web.running()))
    expect(await contents(web)).to.deep.equal(['Do not look', 'Fine'])
    expect(runs).to.deep.equal(['look'])
    expect(told).to.deep.equal(['cancelled', 'answered'])
    expect(await errorFrom(() => web.approve(late[1] ?? ''))).to.be.instanceOf(ArgumentError)
  })

  it('ends the answer of another process, and viewers are told what is gone (E56)', async () => {
    const answer = gate(text('Too late'))
    const { mill, chat } = await setUp([answer, text('Fine')])
    await chat.askLater('Say it')
    const [question] = await chat.messages()
    const seen: LiveEvent[] = []
    const reading = (async () => {
      for await (const event of chat.events()) {
        seen.push(event)
        if (event.type === 'transcript.cut') break
      }
    })()
    const running = errorFrom(() => chat.complete())
    await answer.reached
    const other = await (await bench.connect({ agents: [] })).chats.find(chat.id)
    await other.edit(question?.id ?? '', 'Say something else')
    expect(await running).to.be.instanceOf(CancelledError)
    answer.release()
    await reading
    const cut = { type: 'transcript.cut', messageId: question?.id, content: 'Say something else', removed: [] }
    expect(seen.at(-1)).to.deep.include(cut)
    expect(seen.map(({ type }) => type)).to.include('run.cancelled')
    expect(await contents(other)).to.deep.equal(['Say something else'])
    expect((await chatRow(mill, chat)).cancelledTurn).to.equal(null)
    expect((await chat.complete())?.content).to.equal('Fine')
    expect(questions(1)).to.deep.equal(['Say something else'])
  })

  it('is not touched where the other process does not stop in time, and can be tried again (E56)', async () => {
    const { mill, chat } = await setUp([text('One'), text('Two')])
    await chat.ask('First')
    const [question, answer] = await chat.messages()
    await abandon(mill, chat, [], 1_000)
    const error = await errorFrom(() => chat.edit(question?.id ?? '', 'x', { waitMs: 50 }))
    expect(error).to.be.instanceOf(ChatRunningError).and.have.property('message').that.includes(chat.id)
    expect((await chat.messages()).map(({ id }) => id)).to.deep.equal([question?.id, answer?.id])
    // Once the claim of a dead process has lapsed nobody has to stop.
    await chat.edit(question?.id ?? '', 'First, again')
    expect((await chat.complete())?.content).to.equal('Two')
  })

  it('does not lose a message that left the queue while the turn was being cancelled (E57)', async () => {
    const { mill, chat } = await setUp([text('One'), text('Both')])
    await chat.ask('First')
    const queued = await chat.queue('And this?', { steer: false, wake: false })
    const [question] = await chat.messages()
    await abandon(mill, chat, [], 1_500)
    const editor = await bench.connect()
    const edited = (await editor.chats.find(chat.id)).edit(question?.id ?? '', 'First, again')
    await until('the turn is cancelled', () => chat.cancelled())
    // As the run that is being cancelled may do at the end of its turn.
    const { db } = insidesOf(mill)
    const key = { chatId: chat.id, claimId: (await chatRow(mill, chat)).claimedBy ?? '' }
    const message = userMessage(chat.id, uuid(), queued)
    const [row] = await readQueue(db, chat.id)
    expect(await takeQueued(db, key, { queued: row ? [row] : [], messages: [message], startsTurn: true })).to.equal(
      true,
    )
    await edited
    expect(await contents(chat)).to.deep.equal(['First, again', 'And this?'])
    expect((await chatRow(mill, chat)).wantedAt).to.not.equal(null)
    await chat.complete()
    expect(questions(1)).to.deep.equal(['First, again', 'And this?'])
    expect(await contents(chat)).to.deep.equal(['First, again', 'And this?', 'Both'])
  })

  it('still answers a message of the queue, once, behind the new question (E57)', async () => {
    const { chat, options, runs } = await setUp(
      [toolCalls([call('look', freshId())]), text('Fine'), text('And that')],
      () => deferred<string>().promise,
    )
    await chat.askLater('Look', { enqueue: true })
    await (await bench.connect(options)).startWorkers().ready()
    await until('the tool runs', () => runs.includes('look'))
    await chat.queue('And this?', { steer: false })
    const [question] = await chat.messages()
    await chat.edit(question?.id ?? '', 'Do not look', { enqueue: true })
    await until('all is answered', async () => (await chat.isComplete()) && (await chat.queuedMessages()).length === 0)
    const asked = (await contents(chat)).filter((content) => content === 'And this?' || content === 'Do not look')
    expect(asked).to.deep.equal(['Do not look', 'And this?'])
    expect((await chat.messages()).at(-1)?.role).to.equal('assistant')
    expect(runs).to.deep.equal(['look'])
  })
})
