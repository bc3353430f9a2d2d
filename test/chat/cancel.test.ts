import { expect } from 'chai'
import { CancelledError, type ConnectOptions, defineAgent } from '../../src/index.ts'
import { gate, hang, httpError, rawSse, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { deferred, errorFrom } from '../tools/rows.ts'
import { change, chatRow, lastCalls, makeDue, resultsById, roles, usageRows } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

const event = (delta: object, usage?: object) =>
  `data: ${JSON.stringify({ id: 'cc-1', choices: [{ index: 0, delta, finish_reason: null }], usage })}\n\n`

onEachDatabase('A cancelled turn', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })

  /** A chat in one process and the same chat in another. */
  async function twoProcesses(options: ConnectOptions) {
    const [here, there] = [await bench.connect(options), await bench.connect(options)]
    const chat = await here.chats.create({ agent: options.agents?.[0] })
    return { here, there, chat, other: await there.chats.find(chat.id) }
  }

  /** Resolves when the workers of a connection have looked for due chats a few times more. */
  async function workersThatSweep(options: ConnectOptions): Promise<void> {
    let sweeps = 0
    const onStatement = (sql: string) => {
      if (/wanted_at <= .* ORDER BY wanted_at/.test(sql)) sweeps++
    }
    const mill = await bench.connect({ ...options, observe: { onStatement } })
    await mill.startWorkers().ready()
    await until('the sweeper has looked several times', () => sweeps >= 4)
    await mill.close()
  }

  it('ends a generate() too that no message asked for: the model is asked once (E32)', async () => {
    const answers = gate(text('Too late'))
    await bench.script([text('Hello'), answers, text('Once more')])
    const { chat, other } = await twoProcesses({})
    await chat.ask('Hi')
    const ended = errorFrom(() => chat.generate())
    await answers.reached
    await other.cancel()
    answers.release()
    expect(await ended).to.be.instanceOf(CancelledError)
    expect(bench.model.requests).to.have.length(2)
    expect(await chat.running()).to.equal(false)
  })

  it('keeps what was streamed, with the tokens seen, and nothing half-written (S61)', async () => {
    const shown = [
      event({ role: 'assistant', content: 'One ' }),
      event({ content: 'two ' }, { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 }),
      event({
        tool_calls: [{ index: 0, id: 'call_cut', type: 'function', function: { name: 'wipe', arguments: '{"no' } }],
      }),
    ]
    await bench.script([hang({ after: rawSse(shown.join('')) })])
    const runs: string[] = []
    const agent = defineAgent({ name: freshName(), tools: [recording('wipe', runs)] })
    const { here, chat, other } = await twoProcesses({ agents: [agent] })
    await chat.askLater('Count')
    const chunks: string[] = []
    const ended = errorFrom(() => chat.complete((chunk) => void chunks.push(chunk.text)))
    await until('two chunks were shown', () => chunks.length === 2)
    expect(await other.cancel()).to.equal(other)
    const begun = performance.now()
    expect(await ended).to.be.instanceOf(CancelledError)
    // A look a second, and what the end itself takes.
    expect(performance.now() - begun).to.be.below(2_000)

    const [, answer, ...more] = await chat.messages()
    expect(more).to.deep.equal([])
    expect(answer).to.deep.include({ role: 'assistant', content: 'One two ', finishReason: 'cancelled', toolCalls: [] })
    const [usage] = await usageRows(here, chat)
    expect(usage).to.deep.include({ status: 'cancelled', inputTokens: 7, outputTokens: 2, messageId: answer?.id })
    const row = await chatRow(here, chat)
    expect([row.wantedAt, row.cancelTurn, row.claimedBy, row.failure]).to.deep.equal([null, null, null, null])
    expect([await chat.cancelled(), await chat.isComplete(), await chat.running()]).to.deep.equal([false, true, false])
    expect(await bench.model.waitForEnd((await bench.model.waitForRequests(1))[0] as never)).to.equal('aborted')
    expect(runs).to.deep.equal([])
  })

  it('stores nothing of an answer that was not streamed, and nobody asks again (S62)', async () => {
    const held = gate(text('Too late.'))
    await bench.script([held])
    const agent = defineAgent({ name: freshName(), streaming: false })
    const { here, chat, other } = await twoProcesses({ agents: [agent] })
    const ended = errorFrom(() => chat.ask('Count'))
    await held.reached
    await other.cancel()
    expect(await other.cancelled()).to.equal(true)
    expect(await ended).to.be.instanceOf(CancelledError)
    expect(await roles(chat)).to.equal('user')
    const [usage] = await usageRows(here, chat)
    expect(usage).to.deep.include({ status: 'cancelled', messageId: null, inputTokens: null })
    await workersThatSweep({ agents: [agent] })
    expect(bench.model.requests).to.have.length(1)
    expect(await roles(chat)).to.equal('user')
  })

  it('drops an answer that arrives after the cancel, though nobody saw the cancel before (S62)', async () => {
    const held = gate(text('Too late.'))
    await bench.script([held])
    const agent = defineAgent({ name: freshName(), streaming: false })
    const { chat, other } = await twoProcesses({ agents: [agent] })
    const ended = errorFrom(() => chat.ask('Count'))
    await held.reached
    await other.cancel()
    held.release()
    expect(await ended).to.be.instanceOf(CancelledError)
    expect(await roles(chat)).to.equal('user')
  })

  it('closes the calls of an open round that none has begun (S63)', async () => {
    const ids = [freshId(), freshId()]
    await bench.script([toolCalls(ids.map((id) => call('wipe', id)))])
    const runs: string[] = []
    const agent = defineAgent({ name: freshName(), tools: [recording('wipe', runs)] })
    const { here, chat, other } = await twoProcesses({ agents: [agent] })
    await chat.askLater('Wipe')
    await chat.generate()
    await here.jobs.complete.enqueue(chat)
    await other.cancel()
    expect(await errorFrom(() => other.complete())).to.be.instanceOf(CancelledError)
    expect(runs).to.deep.equal([])
    const results = await resultsById(chat)
    expect(ids.map((id) => results[id]?.outcome)).to.deep.equal(['interrupted', 'interrupted'])
    expect(results[ids[0] ?? '']?.content).to.contain('cancelled')
    expect(bench.model.requests).to.have.length(1)
  })

  it('begins no tool once the cancel is recorded, however late it is seen (S63)', async () => {
    await bench.script([toolCalls([call('wipe')])])
    const runs: string[] = []
    const asked = deferred<void>()
    const answer = deferred<boolean>()
    const requiresApproval = () => {
      asked.resolve()
      return answer.promise
    }
    const agent = defineAgent({ name: freshName(), tools: [recording('wipe', runs, { requiresApproval })] })
    const { chat, other } = await twoProcesses({ agents: [agent] })
    const ended = errorFrom(() => chat.ask('Wipe'))
    await asked.promise
    await other.cancel()
    answer.resolve(true)
    expect(await ended).to.be.instanceOf(CancelledError)
    expect(runs).to.deep.equal([])
    expect(Object.values(await resultsById(chat)).map(({ outcome }) => outcome)).to.deep.equal(['interrupted'])
  })

  it('keeps the result of the tool that ran and does not run the next (S64)', async () => {
    const ids = [freshId(), freshId()]
    await bench.script([toolCalls([call('first', ids[0]), call('second', ids[1])]), text('The second did not run.')])
    const runs: string[] = []
    const begun = deferred<void>()
    const end = deferred<string>()
    const first = recording('first', runs, {}, () => {
      begun.resolve()
      return end.promise
    })
    const agent = defineAgent({ name: freshName(), tools: [first, recording('second', runs)] })
    const { chat, other } = await twoProcesses({ agents: [agent] })
    const ended = errorFrom(() => chat.ask('Work'))
    await begun.promise
    await other.cancel()
    // At once, so that the next call has its chance before the cancel is polled for.
    end.resolve('all of it')
    expect(await ended).to.be.instanceOf(CancelledError)
    expect(runs).to.deep.equal(['first'])
    const results = await resultsById(chat)
    expect(results[ids[0] ?? '']).to.deep.equal({ content: 'all of it', outcome: 'succeeded' })
    expect(results[ids[1] ?? '']?.outcome).to.equal('interrupted')
    // Once: nothing is left to cancel.
    expect((await other.complete())?.content).to.equal('The second did not run.')
    expect(runs).to.deep.equal(['first'])
  })

  it('closes what a parked chat waits for, through a worker and without the model', async () => {
    const id = freshId()
    await bench.script([toolCalls([call('wipe', id)])])
    const agent = defineAgent({ name: freshName(), tools: [recording('wipe', [], { requiresApproval: true })] })
    const { there, chat, other } = await twoProcesses({ agents: [agent] })
    await chat.ask('Wipe')
    await there.startWorkers().ready()
    await other.cancel()
    await until('the call is closed', async () => (await lastCalls(chat)).every((row) => row.resultId !== null))
    expect((await resultsById(chat))[id]?.outcome).to.equal('interrupted')
    expect([await chat.awaitingApproval(), await chat.failure()]).to.deep.equal([false, null])
    expect(bench.model.requests).to.have.length(1)
  })

  it('is answered by an explicit complete, if no text was kept (S65)', async () => {
    const held = gate(text('Too late.'))
    await bench.script([held, text('Answered after all.')])
    const agent = defineAgent({ name: freshName(), streaming: false })
    const { chat, other } = await twoProcesses({ agents: [agent] })
    const ended = errorFrom(() => chat.ask('Count'))
    await held.reached
    await other.cancel()
    await ended
    expect((await other.complete())?.content).to.equal('Answered after all.')
    expect(await roles(chat)).to.equal('user assistant')
    expect(bench.model.requests).to.have.length(2)
  })

  it('goes on with closed calls at an explicit complete (S65)', async () => {
    await bench.script([toolCalls([call('wipe', freshId())]), text('Then not.')])
    const agent = defineAgent({ name: freshName(), tools: [recording('wipe', [], { requiresApproval: true })] })
    const { chat, other } = await twoProcesses({ agents: [agent] })
    await chat.ask('Wipe')
    await other.cancel()
    expect(await errorFrom(() => chat.complete())).to.be.instanceOf(CancelledError)
    expect((await chat.complete())?.content).to.equal('Then not.')
    expect(await roles(chat)).to.equal('user assistant tool assistant')
  })

  it('ends a turn that waits for its next try', async () => {
    await bench.script([httpError(500, 'down')])
    const agent = defineAgent({ name: freshName(), retries: 0 })
    const { here, chat, other } = await twoProcesses({ agents: [agent] })
    await errorFrom(() => chat.ask('Count'))
    expect((await chatRow(here, chat)).wantedAt).to.be.instanceOf(Date)
    await other.cancel()
    await here.startWorkers().ready()
    await until('the cancel is settled', async () => (await chatRow(here, chat)).cancelledTurn !== null)
    expect((await chatRow(here, chat)).wantedAt).to.equal(null)
    expect(bench.model.requests).to.have.length(1)
  })

  it('stays cancelled when a worker that lacks a tool comes upon it first', async () => {
    const burn = recording('burn', [])
    await bench.script([text('Burnt.')])
    const agent = defineAgent({ name: freshName() })
    const here = await bench.connect({ agents: [agent], tools: [burn] })
    const chat = await here.chats.create({ agent })
    await chat.withTools('burn').askLater('Burn it', { enqueue: true })
    await chat.cancel()
    const lacking = await bench.connect({ agents: [agent] })
    const pool = lacking.startWorkers()
    await until('the chat was put off', async () => (await chatRow(here, chat)).putOff > 0)
    await pool.close()
    await makeDue(here, chat)
    await here.startWorkers().ready()
    await until('the turn is over', async () => (await chatRow(here, chat)).wantedAt === null)
    expect(bench.model.requests).to.have.length(0)
    expect((await chatRow(here, chat)).cancelledTurn).to.equal((await chatRow(here, chat)).turn)
  })

  it('costs one statement a second to look for, whatever goes on meanwhile (S68)', async () => {
    const words = Array.from({ length: 200 }, (_, at) => `word${at}`).join(' ')
    const held = gate(text('held'))
    await bench.script(({ messages }) => (messages[0]?.content === 'Wait' ? held : text(words)))
    const looks: string[] = []
    const mill = await bench.connect({
      observe: { onStatement: (sql) => /cancel_turn = turn/.test(sql) && /SELECT/.test(sql) && looks.push(sql) },
    })
    const chats = await Promise.all(Array.from({ length: 5 }, () => mill.chats.create()))
    const begun = performance.now()
    let checkpoints = 0
    const waiting = (await mill.chats.create()).ask('Wait')
    await Promise.all(chats.map((chat) => chat.ask('Talk', {}, () => void checkpoints++)))
    expect(checkpoints).to.be.at.least(1_000)
    await until('it has looked twice', () => looks.length >= 2)
    held.release()
    await waiting
    expect(looks.length).to.be.at.most(Math.ceil((performance.now() - begun) / 1_000))
  })

  it('names its turn: a cancel of an earlier one changes nothing', async () => {
    const held = gate(text('Second.'))
    await bench.script([text('First.'), held])
    const { here, chat, other } = await twoProcesses({})
    await chat.ask('One')
    const { turn } = await chatRow(here, chat)
    const asking = chat.ask('Two')
    await held.reached
    await other.cancel({ turn })
    expect(await chat.cancelled()).to.equal(false)
    held.release()
    expect((await asking)?.content).to.equal('Second.')
  })

  it('leaves the queue alone, and what is queued starts the next turn by itself (S57)', async () => {
    const held = gate(text('One two three', { chunks: 'words' }))
    await bench.script([held, text('Next answer.')])
    const { there, chat, other } = await twoProcesses({})
    const ended = errorFrom(() => chat.ask('Count'))
    await held.reached
    await other.queue('Next', { steer: false })
    await other.cancel()
    expect(await ended).to.be.instanceOf(CancelledError)
    expect((await chat.queuedMessages()).map(({ content }) => content)).to.deep.equal(['Next'])
    await there.startWorkers().ready()
    await until('the queued message is answered', () => chat.isComplete())
    expect((await chat.messages()).map(({ content }) => content)).to.deep.equal(['Count', 'Next', 'Next answer.'])
  })

  it('is not cancelled again by what an earlier process left in the row', async () => {
    await bench.script([text('Answered.')])
    const { here, chat } = await twoProcesses({})
    await chat.askLater('One')
    await change(here.models.Chat, chat.id, { cancel_turn: 1 })
    await chat.askLater('Two')
    expect((await chat.complete())?.content).to.equal('Answered.')
  })
})
