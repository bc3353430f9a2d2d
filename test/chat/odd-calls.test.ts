import { expect } from 'chai'
import * as z from 'zod'
import { defineAgent, defineTool, type Tool } from '../../src/index.ts'
import { type Reply, rawSse, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { change, lastCall, lastCalls, resultsById, roles, usageRows } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

onEachDatabase('A call that is not as it should be', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })

  async function chatWith(replies: readonly Reply[], tools: readonly Tool[], concurrency = 1) {
    await bench.script(replies)
    const agent = defineAgent({ name: freshName(), tools, concurrency })
    const mill = await bench.connect({ agents: [agent] })
    return { mill, agent, chat: await mill.chats.create({ agent }) }
  }

  /** What a request says about calls and results: `id name arguments` and `id = result`. */
  const sent = (request: number) =>
    (bench.model.requests[request]?.messages ?? []).flatMap((message) =>
      message.role === 'tool'
        ? [`${message.tool_call_id} = ${String(message.content)}`]
        : (message.tool_calls ?? []).map(({ id, function: f }) => `${id} ${f.name} ${f.arguments}`),
    )

  it('names the available tools if it is of a tool that was never offered; its siblings run (S74, M32)', async () => {
    const [unknown, known] = [freshId(), freshId()]
    const runs: string[] = []
    const { chat } = await chatWith(
      [toolCalls([call('frobnicate', unknown), call('read', known)]), text('Sorry.')],
      [recording('read', runs), recording('write', runs)],
    )
    expect((await chat.ask('Go'))?.content).to.equal('Sorry.')
    const results = await resultsById(chat)
    expect(results[unknown]?.outcome).to.equal('failed')
    expect(results[unknown]?.content).to.match(/frobnicate.*read, write/)
    expect(results[known]).to.deep.equal({ content: 'read done', outcome: 'succeeded' })
    expect(runs).to.deep.equal(['read'])
  })

  it('can be denied if it is of a tool that was never offered (S36, S74)', async () => {
    const id = freshId()
    const { chat } = await chatWith([toolCalls([call('frobnicate', id)]), text('As you wish.')], [])
    await chat.askLater('Go')
    await chat.generate()
    await chat.deny(id)
    expect((await chat.complete())?.content).to.equal('As you wish.')
    expect((await resultsById(chat))[id]?.outcome).to.equal('denied')
  })

  it('that comes a third time running is answered with a warning, where the agent wants that (M36)', async () => {
    const ids = [freshId(), freshId(), freshId(), freshId()]
    const one = (at: number, name = 'read') => toolCalls([call(name, ids[at])])
    await bench.script([one(0), one(1), one(2), one(3, 'write'), text('Done.')])
    const tools = [recording('read', []), recording('write', [])]
    const agent = defineAgent({ name: freshName(), tools, repetitionLimit: 3 })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.ask('Go')
    const results = await resultsById(chat)
    const warned = ids.map((id) => /called \d times in a row/.exec(results[id]?.content ?? '')?.[0])
    expect(warned).to.deep.equal([undefined, undefined, 'called 3 times in a row', undefined])
    expect(await roles(chat)).to.equal('user assistant tool assistant tool assistant tool assistant tool assistant')
  })

  it('is stored but not run if its arguments are no JSON (S75, M20)', async () => {
    const id = freshId()
    const runs: string[] = []
    const { chat } = await chatWith(
      [toolCalls([call('read', id, 'not json')]), text('Sorry.')],
      [recording('read', runs)],
    )
    expect((await chat.ask('Go'))?.content).to.equal('Sorry.')
    expect(runs).to.deep.equal([])
    expect(await lastCall(chat)).to.deep.include({ arguments: {}, malformedArguments: 'not json' })
    const result = (await resultsById(chat))[id]
    expect(result?.outcome).to.equal('failed')
    expect(result?.content).to.contain('not one JSON object')
  })

  it('reads as a call without arguments if something else is stored as them (S76)', async () => {
    const { mill, chat } = await chatWith(
      [toolCalls([call('read', freshId(), { note: 'x' })]), text('Read.')],
      [recording('read', [])],
    )
    await chat.askLater('Go')
    await chat.generate()
    const { id } = await lastCall(chat)
    for (const stored of ['[1,2]', '"text"', '7', 'null']) {
      await change(mill.models.ToolCall, id, { arguments: stored })
      expect((await mill.models.ToolCall.findByPk(id))?.arguments, stored).to.deep.equal({})
      expect((await lastCall(chat)).arguments, stored).to.deep.equal({})
    }
    expect((await chat.complete())?.content).to.equal('Read.')
  })

  it('gets an id of its own if another chat has used it; each provider hears the id it sent (S77, B08)', async () => {
    const id = freshId()
    const runs: string[] = []
    const { mill, agent, chat } = await chatWith(
      [toolCalls([call('read', id)]), text('One.'), toolCalls([call('read', id)]), text('Two.')],
      [recording('read', runs)],
    )
    const other = await mill.chats.create({ agent })
    await chat.ask('Go')
    expect((await other.ask('Go'))?.content).to.equal('Two.')
    const [first, second] = [await lastCall(chat), await lastCall(other)]
    expect([first.toolCallId, first.providerCallId]).to.deep.equal([id, null])
    expect(second.toolCallId).to.not.equal(id)
    expect(second.providerCallId).to.equal(id)
    expect(sent(1)).to.deep.equal([`${id} read {}`, `${id} = read done`])
    expect(sent(3)).to.deep.equal([`${id} read {}`, `${id} = read done`])
    expect(runs).to.have.length(2)
  })

  it('runs with its own arguments if an earlier turn has used its id, whose result stays (B08)', async () => {
    const id = freshId()
    const rates: Record<string, string> = { EURUSD: '1.10', EURGBP: '0.85' }
    const asked: string[] = []
    const rate = recording('get_rate', asked, {}, (_context, note = '') => rates[note])
    const { chat } = await chatWith(
      [
        toolCalls([call('get_rate', id, { note: 'EURUSD' })]),
        text('1.10'),
        toolCalls([call('get_rate', id, { note: 'EURGBP' })]),
        text('0.85'),
      ],
      [rate],
    )
    await chat.ask('EURUSD?')
    const before = (await chat.messages())[1]?.toolCalls[0]
    await chat.ask('EURGBP?')
    expect(asked).to.have.length(2)
    expect((await chat.messages())[1]?.toolCalls[0]).to.deep.equal(before)
    expect(sent(3)).to.deep.equal([
      `${id} get_rate {"note":"EURUSD"}`,
      `${id} = 1.10`,
      `${id} get_rate {"note":"EURGBP"}`,
      `${id} = 0.85`,
    ])
  })

  it('is one call if the provider repeats it word for word (S78, B06)', async () => {
    const id = freshId()
    const runs: string[] = []
    const { mill, chat } = await chatWith(
      [toolCalls([call('clock', id), call('clock', id)]), text('Noon.')],
      [recording('clock', runs)],
    )
    expect((await chat.ask('Time?'))?.content).to.equal('Noon.')
    expect(runs).to.deep.equal(['clock'])
    expect(await mill.models.ToolCall.count({ where: { chatId: chat.id } })).to.equal(1)
    expect(sent(1)).to.deep.equal([`${id} clock {}`, `${id} = clock done`])
  })

  it('is a call of its own if only its id is that of another (S78, M30)', async () => {
    const id = freshId()
    const runs: string[] = []
    const { chat } = await chatWith(
      [toolCalls([call('read', id, { note: 'a' }), call('read', id, { note: 'b' }), call('write', id)]), text('Done.')],
      [recording('read', runs, {}, (_context, note) => `read ${note}`), recording('write', runs)],
    )
    expect((await chat.ask('Go'))?.content).to.equal('Done.')
    expect(runs).to.deep.equal(['read', 'read', 'write'])
    const calls = await lastCalls(chat)
    expect(new Set(calls.map(({ toolCallId }) => toolCallId)).size).to.equal(3)
    const results = await resultsById(chat)
    expect(calls.map(({ toolCallId }) => results[toolCallId]?.content)).to.deep.equal([
      'read a',
      'read b',
      'write done',
    ])
    expect(sent(1).filter((line) => line.startsWith(`${id} `))).to.have.length(2)
  })

  it('gets an id if the provider sent none', async () => {
    const { chat } = await chatWith(
      [toolCalls([{ name: 'read', arguments: {}, id: null }]), text('Done.')],
      [recording('read', [])],
    )
    expect((await chat.ask('Go'))?.content).to.equal('Done.')
    expect((await lastCall(chat)).toolCallId).to.match(/^call_\w+$/)
  })

  describe('in its argument text', () => {
    const city = (runs: string[]) =>
      defineTool({
        name: 'temp',
        description: 'The temperature of a city.',
        parameters: z.object({ city: z.string() }),
        execute: ({ city: name }) => {
          runs.push(name)
          return 20
        },
      })

    it('runs without arguments if the text is empty (B10, M20)', async () => {
      const runs: string[] = []
      const { chat } = await chatWith(
        [toolCalls([call('ping', freshId(), '')]), text('Pong.')],
        [recording('ping', runs)],
      )
      expect((await chat.ask('Ping'))?.content).to.equal('Pong.')
      expect(runs).to.deep.equal(['ping'])
      expect(await lastCall(chat)).to.deep.include({ arguments: {}, malformedArguments: null })
    })

    for (const [how, argumentText, finishReason, cause] of [
      ['cut by the output limit', '{"ci', 'length', 'output limit'],
      ['two objects', '{"city":"Rome"}{"city":"Lima"}', 'tool_calls', 'not one JSON object'],
    ] as const) {
      it(`does not run if it is ${how}; the model hears why and may try again (B10, M22)`, async () => {
        const [bad, good] = [freshId(), freshId()]
        const runs: string[] = []
        const { mill, chat } = await chatWith(
          [
            toolCalls([call('temp', bad, argumentText)], { finishReason }),
            toolCalls([call('temp', good, { city: 'Oslo' })]),
            text('20 degrees.'),
          ],
          [city(runs)],
        )
        expect((await chat.ask('Temperature?'))?.content).to.equal('20 degrees.')
        expect(runs).to.deep.equal(['Oslo'])
        expect((await resultsById(chat))[bad]?.content).to.contain(cause)
        expect((await chat.messages())[1]?.finishReason).to.equal(finishReason)
        expect((await usageRows(mill, chat)).map(({ status }) => status)).to.deep.equal(Array(3).fill('succeeded'))
        expect(await roles(chat)).to.equal('user assistant tool assistant tool assistant')
      })
    }

    it('does not run if the output limit cut it, and its complete siblings do (M22)', async () => {
      const ids = [freshId(), freshId(), freshId()]
      const calls = [call('temp', ids[0], { city: 'Oslo' }), call('temp', ids[1], { city: 'Rome' })]
      const runs: string[] = []
      const { chat } = await chatWith(
        [toolCalls([...calls, call('temp', ids[2], '{"ci')], { finishReason: 'length' }), text('20 degrees.')],
        [city(runs)],
      )
      expect((await chat.ask('Temperatures?'))?.content).to.equal('20 degrees.')
      expect(runs).to.deep.equal(['Oslo', 'Rome'])
      const results = await resultsById(chat)
      expect(ids.map((id) => results[id]?.outcome)).to.deep.equal(['succeeded', 'succeeded', 'failed'])
      expect(results[ids[2] ?? '']?.content).to.match(/^\{"error":.*output limit/)
      const asking = (await chat.messages())[1]
      expect([asking?.finishReason, asking?.toolCalls[2]?.malformedArguments]).to.deep.equal(['length', '{"ci'])
    })

    for (const [how, argumentText, expected] of [
      ['in a fence', '```json\n{"note":"x"}\n```', { note: 'x' }],
      ['null', 'null', {}],
    ] as const) {
      it(`runs with what it means if that is ${how} (M20)`, async () => {
        const runs: string[] = []
        const { chat } = await chatWith(
          [toolCalls([call('ping', freshId(), argumentText)]), text('Pong.')],
          [recording('ping', runs)],
        )
        expect((await chat.ask('Ping'))?.content).to.equal('Pong.')
        expect(runs).to.deep.equal(['ping'])
        expect(await lastCall(chat)).to.deep.include({ arguments: expected, malformedArguments: null })
      })
    }

    it('is told which argument is wrong if the tool does not take it', async () => {
      const id = freshId()
      const runs: string[] = []
      const { chat } = await chatWith([toolCalls([call('temp', id, { city: 7 })]), text('Sorry.')], [city(runs)])
      await chat.ask('Go')
      expect(runs).to.deep.equal([])
      expect((await resultsById(chat))[id]?.content).to.contain('city')
      expect((await resultsById(chat))[id]?.outcome).to.equal('failed')
    })

    it('is put together by index where fragments of parallel calls interleave (S85)', async () => {
      const [first, second] = [freshId(), freshId()]
      const part = (calls: object[]) =>
        `data: ${JSON.stringify({ id: 'cc', choices: [{ index: 0, delta: { tool_calls: calls }, finish_reason: null }] })}\n\n`
      const open = (index: number, id: string) => ({
        index,
        id,
        type: 'function',
        function: { name: 'temp', arguments: '' },
      })
      const more = (index: number, text: string) => ({ index, function: { arguments: text } })
      const end =
        'data: {"id":"cc","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n'
      const stream = [
        part([open(0, first)]),
        part([open(1, second)]),
        part([more(0, '{"city":')]),
        part([more(1, '{"city":"Lima"}'), more(0, '"Rome"}')]),
        end,
      ]
      const runs: string[] = []
      const { chat } = await chatWith([rawSse(stream.join('')), text('Both.')], [city(runs)])
      expect((await chat.ask('Both?'))?.content).to.equal('Both.')
      expect(runs).to.deep.equal(['Rome', 'Lima'])
      expect((await lastCalls(chat)).map(({ toolCallId }) => toolCallId)).to.deep.equal([first, second])
    })
  })
})
