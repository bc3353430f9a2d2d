import { expect } from 'chai'
import fc from 'fast-check'
import {
  ArgumentError,
  type Chat,
  defineAgent,
  InvalidMessageError,
  OrphanedResultError,
  TextMessage,
  ToolCallMessage,
  ToolMessage,
  ToolResultMessage,
  UserMessage,
} from '../../src/index.ts'
import { text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { errorFrom } from '../tools/rows.ts'
import { roles, usageRows } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

onEachDatabase('A transcript as values', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })
  const hashes = async (chat: Chat) => (await chat.transcript()).map((value) => value.toHash())
  const tool = (id: string, input = {}) => new ToolMessage({ id, name: 'read', input })

  it('is an answer’s text, then its calls, oldest first; written back it changes nothing (M16, M17, M18)', async () => {
    const [first, second] = [freshId(), freshId()]
    await bench.script([
      toolCalls([call('read', first, { note: 'a' }), call('read', second)], { text: 'One moment' }),
      text('Done'),
    ])
    const agent = defineAgent({ name: freshName(), tools: [recording('read', [], {}, () => ({ lines: 3 }))] })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.ask('Go')
    const values = await chat.transcript()
    expect(values.map((value) => value.toHash())).to.deep.equal([
      { type: 'text', role: 'user', content: 'Go' },
      { type: 'text', role: 'assistant', content: 'One moment', stop_reason: 'tool' },
      {
        type: 'tool_call',
        role: 'assistant',
        tools: [tool(first, { note: 'a' }).toHash(), tool(second).toHash()],
        stop_reason: 'tool',
      },
      ...[tool(first, { note: 'a' }), tool(second)].map((of) => ({
        type: 'tool_result',
        role: 'tool_result',
        tool: of.toHash(),
        content: { data: { lines: 3 } },
        stop_reason: 'tool',
      })),
      { type: 'text', role: 'assistant', content: 'Done', stop_reason: 'stop' },
    ])
    const before = await chat.messages()
    const record = await chat.addMessage(values.slice(1, 5))
    expect(record.role).to.equal('tool')
    expect(await chat.messages()).to.deep.equal(before)

    const sent = bench.model.requests[1]?.messages.slice(1) ?? []
    expect(sent.map(({ role }) => role)).to.deep.equal(['assistant', 'tool', 'tool'])
    expect(sent[0]).to.deep.include({ content: 'One moment' })
    expect(sent[0]?.tool_calls?.map(({ id, function: f }) => [id, f.arguments])).to.deep.equal([
      [first, '{"note":"a"}'],
      [second, '{}'],
    ])
    expect(sent[1]).to.deep.include({ tool_call_id: first, content: '{"lines":3}' })
  })

  it('goes into another chat and comes out the same (M14, M16)', async () => {
    const mill = await bench.connect()
    const json = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as never)
    const content = fc.oneof(
      json.map((data) => ({ data })),
      fc.string({ minLength: 1 }).map((error) => ({ error })),
    )
    const rounds = fc.array(fc.tuple(fc.boolean(), fc.array(content, { minLength: 1, maxLength: 3 })), { maxLength: 3 })
    await fc.assert(
      fc.asyncProperty(rounds, async (given) => {
        const chat = await mill.chats.create()
        const values = [
          new TextMessage({ role: 'user', content: 'Go' }),
          ...given.flatMap(([says, contents]) => {
            const tools = contents.map((_, at) => tool(freshId(), { at }))
            const head = new TextMessage({ role: 'assistant', content: 'So', stopReason: 'tool' })
            const results = contents.map(
              (one, at) => new ToolResultMessage({ tool: tools[at] ?? tool(''), content: one }),
            )
            return [...(says ? [head] : []), new ToolCallMessage({ role: 'assistant', tools }), ...results]
          }),
          new TextMessage({ role: 'assistant', content: 'Done', stopReason: 'stop' }),
        ]
        await chat.addMessage(values)
        expect(await hashes(chat)).to.deep.equal(values.map((value) => value.toHash()))
      }),
      { numRuns: 15 },
    )
  })

  it('keeps "42" and 42 apart, unicode, nested nulls, and an error that is data (M23, M24)', async () => {
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    const data = ['42', 42, { a: null, b: ['ß', '🧵'] }, null, { error: 'quota' }, '{"error":"x"}', true]
    const tools = data.map(() => tool(freshId()))
    await chat.addMessage(new ToolCallMessage({ role: 'assistant', tools }))
    for (const [at, of] of tools.entries())
      await chat.addMessage(new ToolResultMessage({ tool: of, content: { data: data[at] } }))
    const results = (await chat.transcript()).filter((value) => value instanceof ToolResultMessage)
    expect(results.map((result) => result.data)).to.deep.equal(data)
    expect(results.every((result) => result.success())).to.equal(true)
  })

  it('refuses a result whose call is gone; requests leave it out (M19)', async () => {
    await bench.script([text('Fine')])
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    const of = tool(freshId())
    await chat.addMessage(new UserMessage('Go'))
    await chat.addMessage(new ToolCallMessage({ role: 'assistant', tools: [of] }))
    await chat.addMessage(new ToolResultMessage({ tool: of, content: { data: 1 } }))
    await mill.sequelize.query('DELETE FROM threadmill_tool_calls WHERE tool_call_id = ?', {
      replacements: [of.id ?? ''],
    })
    expect(await errorFrom(() => chat.transcript())).to.be.instanceOf(OrphanedResultError)
    await chat.ask('Again')
    expect(bench.model.requests[0]?.messages.map(({ role }) => role)).to.not.include('tool')
  })

  it('takes a second result for what it is: nothing (M29)', async () => {
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    const of = tool(freshId())
    await chat.addMessage(new ToolCallMessage({ role: 'assistant', tools: [of] }))
    const first = await chat.addMessage(new ToolResultMessage({ tool: of, content: { data: 1 } }))
    const second = await chat.addMessage(new ToolResultMessage({ tool: of, content: { data: 2 } }))
    expect([second.id, second.content]).to.deep.equal([first.id, '1'])
    expect((await chat.messages()).map(({ role, content }) => [role, content])).to.deep.equal([
      ['assistant', null],
      ['tool', '1'],
    ])
  })

  it('takes a user message, in whose row the envelope is lost (M15)', async () => {
    const chat = await (await bench.connect()).chats.create()
    const given = new UserMessage('Hi', { sessionId: 's', systemPrompt: 'p', metadata: { a: 1 } })
    const record = await chat.addMessage(given)
    expect([record.role, record.content]).to.deep.equal(['user', 'Hi'])
    expect(await hashes(chat)).to.deep.equal([given.toMessage().toHash()])
  })

  it('refuses what no row can hold, and writes nothing of the whole list then (M8, M15, M30)', async () => {
    const mill = await bench.connect()
    const [chat, other] = [await mill.chats.create(), await mill.chats.create()]
    const foreign = tool(freshId())
    await other.addMessage(new ToolCallMessage({ role: 'assistant', tools: [foreign] }))
    const twice = tool(freshId())
    const text_ = new TextMessage({ role: 'user', content: 'x' })
    const own = tool(freshId())
    const result = (content: unknown) => [
      new ToolCallMessage({ role: 'assistant', tools: [own] }),
      new ToolResultMessage({ tool: own, content }),
    ]
    const cycle: unknown[] = []
    cycle.push(cycle)
    const bad: readonly unknown[] = [
      new ToolCallMessage({ role: 'assistant', tools: [] }),
      new ToolCallMessage({ role: 'assistant', tools: [twice, twice] }),
      new ToolCallMessage({ role: 'assistant', tools: [{ id: '', name: 'x', input: {} }] }),
      new ToolCallMessage({ role: 'assistant', tools: [{ id: 'a', name: '', input: {} }] }),
      new ToolCallMessage({ role: 'assistant', tools: [{ id: 'a', name: 'x', input: 'text' }] }),
      new ToolResultMessage({ tool: foreign, content: { data: 1 } }),
      [text_, new ToolResultMessage({ tool: tool('nobody'), content: { data: 1 } })],
      [text_, 'x'],
      [],
      null,
      new TextMessage({ role: 'tool_result', content: 'x' }),
      new TextMessage({ role: 'user', content: 7 }),
      result({ data: cycle }),
      result({ error: cycle }),
      result({ data: 1n }),
      result({ data: () => 1 }),
      result({ data: 1, error: 'x' }),
    ]
    for (const given of bad)
      expect(await errorFrom(() => chat.addMessage(given as never))).to.be.instanceOf(ArgumentError)
    expect(await errorFrom(() => chat.addMessage(bad[0] as never))).to.be.instanceOf(InvalidMessageError)
    const inList = await errorFrom(() => chat.addMessage(result({ data: cycle })))
    expect(inList).to.be.instanceOf(InvalidMessageError)
    expect((inList as Error).message).to.match(/^messages\[1\]: /)
    expect(await chat.messages()).to.deep.equal([])
  })

  it('has records that tell of themselves, and can be copied to another chat', async () => {
    const id = freshId()
    await bench.script([toolCalls([call('read', id)]), text('{"ok":true}')])
    const tools = [recording('read', [], {}, () => ({ error: 'no such file' }))]
    const agent = defineAgent({ name: freshName(), tools, prices: { input: 1, output: 1 } })
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.ask('Go')
    const { Message, ToolCall } = mill.models
    const rows = await Message.findAll({
      where: { chatId: chat.id },
      order: ['position'],
      include: ['toolCalls', 'parentToolCall'],
    })
    const bare = await Message.findAll({ where: { chatId: chat.id }, order: ['position'] })
    const [, asks, result, answer] = rows
    expect([await asks?.toolCall(), result?.toolResult(), await answer?.toolCall()]).to.deep.equal([true, true, false])
    expect(Object.keys((await asks?.callsById()) ?? {})).to.deep.equal([id])
    expect(asks?.toolCalls?.map((one) => [one.name, one.toLlm().id, one.paused(), one.running()])).to.deep.equal([
      ['read', id, false, false],
    ])
    expect(result?.parentToolCall?.toolCallId).to.equal(id)
    expect((await asks?.toolResults())?.map((one) => one.id)).to.deep.equal([result?.id])
    expect(result?.toolErrorMessage()).to.equal('no such file')
    expect(answer?.parsed()).to.deep.equal({ ok: true })
    expect([answer?.thinking(), answer?.toolErrorMessage()]).to.deep.equal([null, null])
    expect(await ToolCall.count({ where: { name: 'read', chatId: chat.id } })).to.equal(1)
    const [usage] = (await usageRows(mill, chat)).filter(({ messageId }) => messageId === answer?.id)
    expect((await answer?.tokens())?.input).to.equal(usage?.inputTokens)
    expect((await answer?.cost())?.total).to.be.a('string')
    expect([answer?.cachedUntilHere(), (await answer?.cacheUntilHere({ ttl: '5m' }))?.cachedUntilHere()]).to.deep.equal(
      [false, true],
    )

    const copy = await mill.chats.create({ agent })
    const copied = []
    for (const row of bare) copied.push(await copy.addMessage(row))
    expect(await roles(copy)).to.equal('user assistant tool assistant')
    const [, copyAsks, copyResult] = await copy.messages()
    expect(copyAsks?.toolCalls[0]?.toolCallId).to.not.equal(id)
    expect(copyResult?.content).to.equal('{"error":"no such file"}')
    expect(copyAsks?.toolCalls[0]?.resultId).to.equal(copyResult?.id)
    expect(await chat.isComplete()).to.equal(true)
  })
})
