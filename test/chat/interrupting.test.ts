import { expect } from 'chai'
import type { Transaction } from 'sequelize'
import { CancelledError, type Chat, ChatRunningError, defineAgent } from '../../src/index.ts'
import { gate, httpError, type Reply, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { deferred, errorFrom } from '../tools/rows.ts'
import { abandon, chatRow, lastCalls, resultsById } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

onEachDatabase('A message that interrupts', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 20_000 })
  beforeEach(function () {
    this.currentTest?.timeout(60_000)
  })

  /** A chat whose tool `work` goes on until it is aborted, a connection with workers, and the chat as users' process has it. */
  async function both(replies: readonly Reply[]) {
    await bench.script(replies)
    const runs: string[] = []
    const begun = deferred<void>()
    const work = recording('work', runs, {}, ({ signal }) => {
      begun.resolve()
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve('aborted')))
    })
    const wipe = recording('wipe', runs, { requiresApproval: true })
    const agent = defineAgent({ name: freshName(), retries: 0, tools: [work, wipe, recording('read', runs)] })
    const mill = await bench.connect({ agents: [agent] })
    const run = await mill.chats.create({ agent })
    const users = await bench.connect({ agents: [agent] })
    return { mill, run, users, web: await users.chats.find(run.id), runs, begun: begun.promise }
  }
  const spoken = async (chat: Chat) => (await chat.messages()).map(({ role, content }) => `${role}: ${content}`)
  const interrupt = (chat: Chat, content = 'stop', transaction?: Transaction) =>
    chat.post(content, { whileRunning: 'interrupt', transaction })
  const atRest = (chat: Chat) =>
    until('all is answered', async () => (await chat.isComplete()) && !(await chat.running()))
  const outcomes = async (chat: Chat) => Object.values(await resultsById(chat)).map(({ outcome }) => outcome)

  /** It was delivered, as the question of the turn that was answered last, and nothing is left of the interruption. */
  async function expectAnswered(mill: Awaited<ReturnType<typeof both>>['mill'], chat: Chat, id: string): Promise<void> {
    const [question, answer] = (await chat.messages()).slice(-2)
    expect([question?.content, answer?.content]).to.deep.equal(['stop', 'answer'])
    expect(await chat.receipt(id)).to.deep.include({ status: 'delivered', messageId: question?.id })
    const { wantedAt, claimedBy, failure, parked } = await chatRow(mill, chat)
    expect({ wantedAt, claimedBy, failure, parked }).to.deep.equal({
      wantedAt: null,
      claimedBy: null,
      failure: null,
      parked: false,
    })
  }

  it('an answer that streams keeps what was shown, and is answered in a turn of its own (E75)', async () => {
    const first = gate(text('one two three four', { chunks: 'words' }))
    const { mill, run, web } = await both([first, text('answer')])
    await mill.startWorkers().ready()
    await run.askLater('question', { enqueue: true })
    await first.reached
    const shown = (async () => {
      let seen = ''
      for await (const event of web.events({ after: '0' })) {
        if (event.type === 'text.delta') seen += event.text
        if (seen.trim() === 'one two') return
      }
    })()
    for (const _ of [1, 2]) await first.step()
    await shown
    const receipt = await interrupt(web)
    expect(receipt).to.include({ status: 'waiting', steer: false })
    await until('it is answered', async () => (await web.messages()).at(-1)?.content === 'answer')
    first.release()
    await atRest(web)
    const [question, cut, ...rest] = await web.messages()
    expect([question?.content, cut?.content?.trim(), cut?.finishReason]).to.deep.equal([
      'question',
      'one two',
      'cancelled',
    ])
    expect(rest.map(({ content }) => content)).to.deep.equal(['stop', 'answer'])
    expect(bench.model.requests).to.have.length(2)
    await expectAnswered(mill, web, receipt.id)
    expect((await chatRow(mill, run)).turn).to.equal(2)
  })

  it('more than once goes behind what waits already, and one turn answers all of it (E75)', async () => {
    const first = gate(text('unseen'))
    const { mill, run, users, web } = await both([first, text('answer')])
    await mill.startWorkers().ready()
    await run.askLater('question', { enqueue: true })
    await first.reached
    // At once, or the turn that the first of them starts could be cut off by the second.
    const receipts = await users.transaction(async (transaction) => [
      await web.post('before', { transaction }),
      await interrupt(web, 'once', transaction),
      await interrupt(web, 'stop', transaction),
    ])
    await until('they are answered', async () => (await web.messages()).at(-1)?.content === 'answer')
    first.release()
    await atRest(web)
    expect(await spoken(web)).to.deep.equal(
      ['question', 'before', 'once', 'stop'].map((content) => `user: ${content}`).concat('assistant: answer'),
    )
    for (const { id } of receipts) expect((await web.receipt(id))?.status).to.equal('delivered')
    expect(bench.model.requests).to.have.length(2)
    expect((await chatRow(mill, run)).turn).to.equal(2)
  })

  it('a tool that runs has it stopped, its call and those after it closed, and is answered (E76)', async () => {
    const ids = [freshId(), freshId()]
    const { mill, run, web, runs, begun } = await both([
      toolCalls([call('work', ids[0]), call('read', ids[1])]),
      text('answer'),
    ])
    await mill.startWorkers().ready()
    await run.askLater('question', { enqueue: true })
    await begun
    const receipt = await interrupt(web)
    expect(receipt.status).to.equal('waiting')
    await until('it is answered', async () => (await web.messages()).at(-1)?.content === 'answer')
    await atRest(web)
    expect(runs).to.deep.equal(['work'])
    expect((await resultsById(web))[ids[1] ?? '']?.outcome).to.equal('interrupted')
    expect(await outcomes(web))
      .to.have.length(2)
      .to.have.length(2)
      .and.to.include('interrupted')
    expect(bench.model.requests).to.have.length(2)
    await expectAnswered(mill, web, receipt.id)
  })

  it('a chat that waits for a decision closes the call, which never runs, approved or not (E76)', async () => {
    const { mill, run, web, runs } = await both([toolCalls([call('wipe', freshId())]), text('answer')])
    await mill.startWorkers().ready()
    await run.askLater('question', { enqueue: true })
    await until('it waits', () => web.awaitingApproval())
    await until('nobody holds it', async () => !(await web.running()))
    const [open] = await web.pendingApprovals()
    const receipt = await interrupt(web)
    expect(receipt.status).to.equal('waiting')
    await web.approve(open?.id ?? '')
    await until('it is answered', async () => (await web.messages()).at(-1)?.content === 'answer')
    await atRest(web)
    expect([runs, await outcomes(web)]).to.deep.equal([[], ['interrupted']])
    await expectAnswered(mill, web, receipt.id)
  })

  it('calls that somebody left open, wanted by nobody, has them closed (E76)', async () => {
    const { mill, run, web, runs } = await both([toolCalls([call('read', freshId())]), text('answer')])
    await run.askLater('question')
    await run.generate()
    const { wantedAt, parked } = await chatRow(mill, run)
    expect([wantedAt, parked]).to.deep.equal([null, false])
    const receipt = await interrupt(web)
    expect(receipt.status).to.equal('waiting')
    await mill.startWorkers().ready()
    await until('it is answered', async () => (await web.messages()).at(-1)?.content === 'answer')
    await atRest(web)
    expect([runs, await outcomes(web)]).to.deep.equal([[], ['interrupted']])
    await expectAnswered(mill, web, receipt.id)
  })

  it('calls of a process that died is carried out once its claim has lapsed; with wake: false too (E76)', async () => {
    const { mill, run, web, runs } = await both([toolCalls([call('read', freshId())]), text('answer')])
    await run.askLater('question')
    await run.generate()
    await abandon(mill, run, await lastCalls(run), 3_000)
    await mill.startWorkers().ready()
    const receipt = await web.post('stop', { whileRunning: 'interrupt', wake: false })
    expect(receipt.status).to.equal('waiting')
    await until('it is answered', async () => (await web.messages()).at(-1)?.content === 'answer')
    await atRest(web)
    expect([runs, await outcomes(web)]).to.deep.equal([[], ['interrupted']])
    await expectAnswered(mill, web, receipt.id)
  })

  it('a turn that is just being given up starts its own all the same (E75)', async () => {
    const first = gate(httpError(400, 'no'))
    const { mill, run, web } = await both([first, text('answer')])
    await mill.startWorkers().ready()
    await run.askLater('question', { enqueue: true })
    await first.reached
    const receipt = await interrupt(web)
    first.release()
    await until('it is answered', async () => (await web.messages()).at(-1)?.content === 'answer')
    await atRest(web)
    await expectAnswered(mill, web, receipt.id)
  })

  it('wishes for its turn after it has cancelled the other, which runs until that is carried out (E74, E75)', async () => {
    const first = gate(text('unseen'))
    const { run, users, web } = await both([first])
    const ended = errorFrom(() => run.ask('question'))
    await first.reached
    // Under the lock of the chat's row, or the run could have carried it out already.
    await users.transaction(async (transaction) => {
      await interrupt(web, 'stop', transaction)
      const row = await users.models.Chat.findByPk(run.id, { transaction, rejectOnEmpty: true })
      expect([row.cancelTurn, row.turn]).to.deep.equal([1, 1])
      expect(row.wantedSeq).to.be.greaterThan(row.cancelSeq ?? Number.POSITIVE_INFINITY)
      const refused = await errorFrom(() => web.post('x', { whileRunning: 'reject', transaction }))
      expect(refused).to.be.instanceOf(ChatRunningError)
    })
    expect(await ended).to.be.instanceOf(CancelledError)
    first.release()
    expect((await chatRow(users, web)).wantedAt, 'its wish is kept').not.to.equal(null)
  })
})
