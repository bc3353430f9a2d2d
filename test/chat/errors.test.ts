import { expect } from 'chai'
import { BadRequestError, defineAgent, EmptyAnswerError, ServerError, ToolRoundLimitError } from '../../src/index.ts'
import { cut, httpError, type Reply, rawSse, streamError, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { deferred, errorFrom } from '../tools/rows.ts'
import { chatRow, resultsById, roles, usageRows } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

onEachDatabase('A model request that fails', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })

  /** A chat of an agent without physical retries, so that each request of a script is one run's. */
  async function chatWith(replies: readonly Reply[], tools: ReturnType<typeof recording>[] = []) {
    await bench.script(replies)
    const agent = defineAgent({ name: freshName(), retries: 0, tools })
    const mill = await bench.connect({ agents: [agent] })
    return { mill, chat: await mill.chats.create({ agent }) }
  }

  it('leaves the question alone and a failed entry, if it fails for good (S70)', async () => {
    const { mill, chat } = await chatWith([httpError(400, 'no such thing'), text('Danube')])
    const error = await errorFrom(() => chat.ask('Name a river'))
    expect(error).to.be.instanceOf(BadRequestError)
    expect((error as Error).message).to.contain('no such thing')
    expect(await roles(chat)).to.equal('user')
    const [usage, ...more] = await usageRows(mill, chat)
    expect([usage?.status, usage?.messageId, more.length]).to.deep.equal(['failed', null, 0])
    expect(await chat.failure()).to.deep.include({ code: 'provider.bad_request', turn: 1 })
    expect([await chat.isComplete(), await chat.running()]).to.deep.equal([false, false])
    expect((await chatRow(mill, chat)).wantedAt).to.equal(null)
  })

  it('leaves nothing that spoils the next request, even if it may pass later (B01)', async () => {
    const { mill, chat } = await chatWith([httpError(500, 'upstream down'), text('Danube')])
    const error = await errorFrom(() => chat.ask('Name a river'))
    expect(error).to.be.instanceOf(ServerError)
    expect(await roles(chat)).to.equal('user')
    const [failed] = await usageRows(mill, chat)
    expect([failed?.status, failed?.messageId]).to.deep.equal(['failed', null])
    expect((await chat.complete())?.content).to.equal('Danube')
    expect(bench.model.requests[1]?.messages).to.have.length(1)
    expect(await roles(chat)).to.equal('user assistant')
    expect((await usageRows(mill, chat)).map(({ status }) => status)).to.deep.equal(['failed', 'succeeded'])
  })

  it('keeps the tool round before it, which is not run again (S71)', async () => {
    const runs: string[] = []
    const id = freshId()
    const { chat } = await chatWith(
      [toolCalls([call('read', id)]), httpError(400, 'no'), text('Read.')],
      [recording('read', runs)],
    )
    await errorFrom(() => chat.ask('Read it'))
    expect(await roles(chat)).to.equal('user assistant tool')
    expect((await resultsById(chat))[id]?.content).to.equal('read done')
    expect((await chat.complete())?.content).to.equal('Read.')
    expect(runs).to.deep.equal(['read'])
    expect(await roles(chat)).to.equal('user assistant tool assistant')
  })

  it('comes out as it is when a chunk callback throws it (S72)', async () => {
    const { mill, chat } = await chatWith([text('one two three four', { chunks: 'words' }), text('Again.')])
    const mine = new Error('enough')
    const seen: number[] = []
    const thrown = await errorFrom(() =>
      chat.ask('Count', {}, ({ index }) => {
        seen.push(index)
        if (index === 2) throw mine
      }),
    )
    expect(thrown).to.equal(mine)
    expect(seen).to.deep.equal([0, 1, 2])
    expect(await roles(chat)).to.equal('user')
    expect((await usageRows(mill, chat)).map(({ status }) => status)).to.deep.equal(['failed'])
    expect([await chat.running(), (await chatRow(mill, chat)).claimedBy]).to.deep.equal([false, null])
    expect((await chat.complete())?.content).to.equal('Again.')
  })

  it('is an answer without text and calls, the second time; the chat can be used on (B04, M21)', async () => {
    const empty = rawSse(
      'data: {"id":"cc","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n' +
        'data: {"id":"cc","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],' +
        '"usage":{"prompt_tokens":12,"completion_tokens":0,"total_tokens":12}}\n\ndata: [DONE]\n\n',
    )
    const { mill, chat } = await chatWith([empty, empty, text('I am here.')])
    expect(await errorFrom(() => chat.ask('hi'))).to.be.instanceOf(EmptyAnswerError)
    expect(await roles(chat)).to.equal('user')
    expect(await chat.failure()).to.deep.include({ code: 'provider.empty_answer' })
    const entries = (await usageRows(mill, chat)).map((usage) => [usage.inputTokens, usage.outputTokens])
    expect(entries).to.deep.equal([
      [12, 0],
      [12, 0],
    ])
    expect((await chat.ask('still there?'))?.content).to.equal('I am here.')
    expect(bench.model.requests[2]?.messages.map(({ role }) => role)).to.deep.equal(['user', 'user'])
    expect(await chat.failure()).to.equal(null)
  })

  it('is asked once more after one empty answer, and then answered as usual (B04)', async () => {
    const { mill, chat } = await chatWith([text(''), text('Here.')])
    expect((await chat.ask('hi'))?.content).to.equal('Here.')
    const usages = await usageRows(mill, chat)
    const answer = (await chat.messages()).at(-1)
    expect(usages.map(({ messageId }) => messageId)).to.deep.equal([answer?.id, answer?.id])
  })

  describe('as a stream that ends badly', () => {
    for (const [ending, reply] of [
      ['a finish reason and the terminator', text('The sum is 4')],
      ['a finish reason alone', cut({ after: 'The sum is 4', finishReason: 'stop' })],
      ['the terminator alone', cut({ after: 'The sum is 4', done: true })],
    ] as const) {
      it(`is none: ${ending} is proof enough (B16)`, async () => {
        const { mill, chat } = await chatWith([reply])
        expect((await chat.ask('2 + 2?'))?.content).to.equal('The sum is 4')
        expect((await usageRows(mill, chat)).map(({ status }) => status)).to.deep.equal(['succeeded'])
      })
    }

    it('keeps nothing of a text that was cut, and asks anew (B16)', async () => {
      const { mill, chat } = await chatWith([cut({ after: 'The sum is' }), text('The sum is 4')])
      const error = await errorFrom(() => chat.ask('2 + 2?'))
      expect(error).to.deep.include({ code: 'provider.stream_cut', retryable: true })
      expect(await roles(chat)).to.equal('user')
      expect((await usageRows(mill, chat)).map(({ status }) => status)).to.deep.equal(['failed'])
      expect((await chat.complete())?.content).to.equal('The sum is 4')
      expect(bench.model.requests[1]?.messages).to.have.length(1)
    })

    it('runs no call of an answer that was cut, complete as it may look (B16)', async () => {
      const runs: string[] = []
      const { chat } = await chatWith(
        [cut({ after: toolCalls([call('pay', freshId())]) }), text('Not paid.')],
        [recording('pay', runs)],
      )
      await errorFrom(() => chat.ask('Pay'))
      expect((await chat.complete())?.content).to.equal('Not paid.')
      expect(runs).to.deep.equal([])
      expect(await roles(chat)).to.equal('user assistant')
    })

    for (const after of ['', 'Hello']) {
      it(`says what the provider said inside it, ${after ? 'after' : 'before any'} text (B17)`, async () => {
        const reply = streamError({ message: 'worker queue full (9/8)', type: 'server_error', code: 502 }, { after })
        const { mill, chat } = await chatWith([reply, text('Fine now.')])
        const error = await errorFrom(() => chat.ask('hi'))
        expect((error as Error).message).to.contain('worker queue full (9/8)')
        expect(await roles(chat)).to.equal('user')
        expect((await usageRows(mill, chat)).map(({ status }) => status)).to.deep.equal(['failed'])
        expect((await chat.complete())?.content).to.equal('Fine now.')
        expect(bench.model.requests[1]?.messages).to.have.length(1)
      })
    }

    it('starts anew under another id where text was shown, so that no two texts join (B17, S86)', async () => {
      await bench.script([streamError('overloaded', { after: 'Hel lo' }), text('Hello')])
      const agent = defineAgent({ name: freshName(), retries: 1 })
      const mill = await bench.connect({ agents: [agent] })
      const chat = await mill.chats.create({ agent })
      const shown = new Map<string, string>()
      const answer = await chat.ask('hi', {}, ({ messageId, text: part, index }) => {
        if (index === 0) expect(shown.has(messageId)).to.equal(false)
        shown.set(messageId, (shown.get(messageId) ?? '') + part)
      })
      expect([...shown.values()]).to.deep.equal(['Hel lo', 'Hello'])
      expect([...shown.keys()][1]).to.equal(answer?.id)
      for await (const event of chat.events({ after: '0' })) {
        if (event.type !== 'attempt.restarted') continue
        expect(event).to.deep.include({ messageId: answer?.id, replaces: [...shown.keys()][0] })
        break
      }
    })
  })

  it('is not even sent once the rounds of the turn are used up; complete() allows as many again (S80, M35)', async () => {
    const runs: string[] = []
    await bench.script(() => toolCalls([call('read')]))
    const agent = defineAgent({ name: freshName(), rounds: 2, tools: [recording('read', runs)] })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    expect(await errorFrom(() => chat.ask('Read'))).to.be.instanceOf(ToolRoundLimitError)
    expect([runs.length, bench.model.requests.length]).to.deep.equal([2, 2])
    expect(await roles(chat)).to.equal('user assistant tool assistant tool')
    expect(await chat.failure()).to.deep.include({ code: 'chat.tool_round_limit', turn: 1 })
    expect(await errorFrom(() => chat.complete())).to.be.instanceOf(ToolRoundLimitError)
    expect([runs.length, bench.model.requests.length]).to.deep.equal([4, 4])
  })

  describe('in the tools before it', () => {
    it('keeps the result of one tool and closes the call that threw; neither runs again (S79, M31)', async () => {
      const [good, bad] = [freshId(), freshId()]
      await bench.script([toolCalls([call('good', good), call('bad', bad)]), text('Went on.')])
      const runs: string[] = []
      const threw = deferred<void>()
      const mine = new Error('disk full')
      const agent = defineAgent({
        name: freshName(),
        concurrency: 2,
        tools: [
          // Ends after its sibling threw: it is awaited all the same.
          recording('good', runs, {}, () => threw.promise.then(() => 'good done')),
          recording('bad', runs, {}, () => {
            threw.resolve()
            throw mine
          }),
        ],
      })
      const mill = await bench.connect({ agents: [agent] })
      const chat = await mill.chats.create({ agent })
      expect(await errorFrom(() => chat.ask('Both'))).to.equal(mine)
      const results = await resultsById(chat)
      expect(results[good]).to.deep.equal({ content: 'good done', outcome: 'succeeded' })
      expect(results[bad]?.outcome).to.equal('interrupted')
      expect(results[bad]?.content).to.contain('bad').and.to.contain('disk full')
      const told: string[] = []
      for await (const event of chat.events({ after: '0' })) {
        told.push(event.type)
        if (event.type === 'run.failed') break
      }
      expect(told.filter((type) => type.startsWith('run.'))).to.deep.equal(['run.started', 'run.failed'])
      expect((await chat.complete())?.content).to.equal('Went on.')
      expect(runs).to.deep.equal(['good', 'bad'])
    })

    it('begins no further call once one threw; the next complete runs it', async () => {
      const runs: string[] = []
      await bench.script([toolCalls([call('bad'), call('later')]), text('Went on.')])
      const bad = recording('bad', runs, {}, () => {
        throw new Error('no')
      })
      const agent = defineAgent({ name: freshName(), tools: [bad, recording('later', runs)] })
      const mill = await bench.connect({ agents: [agent] })
      const chat = await mill.chats.create({ agent })
      await errorFrom(() => chat.ask('Both'))
      expect(runs).to.deep.equal(['bad'])
      await chat.complete()
      expect(runs).to.deep.equal(['bad', 'later'])
    })

    it("tells the model instead where the tool's onError says so (M31)", async () => {
      const id = freshId()
      await bench.script([toolCalls([call('bad', id)]), text('Went on.')])
      const bad = recording('bad', [], { onError: 'report' }, () => {
        throw new Error('disk full')
      })
      const agent = defineAgent({ name: freshName(), tools: [bad] })
      const mill = await bench.connect({ agents: [agent] })
      const chat = await mill.chats.create({ agent })
      expect((await chat.ask('Go'))?.content).to.equal('Went on.')
      expect((await resultsById(chat))[id]).to.deep.equal({ content: '{"error":"disk full"}', outcome: 'failed' })
    })
  })
})
