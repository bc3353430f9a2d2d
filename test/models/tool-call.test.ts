import { expect } from 'chai'
import { QueryTypes } from 'sequelize'
import {
  type Chat,
  type MessageRecord,
  ReadOnlyModelError,
  type Threadmill,
  type ToolCallRecord,
} from '../../src/index.ts'
import { rejectionOf } from '../chat/support/watching.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'

onEachDatabase('A tool call’s record', (kind) => {
  const bench = useBench(kind)
  let mill: Threadmill
  let chat: Chat
  beforeEach(async () => {
    mill = await bench.connect()
    chat = await mill.chats.create()
    await chat.askLater('Refund it.')
  })

  /** Stores calls of these names in one answer. */
  const answer = (...names: string[]) =>
    chat.addMessage({ role: 'assistant', toolCalls: names.map((name) => ({ name, arguments: { of: name } })) })
  /** Writes behind Threadmill's back, as SQL. */
  const set = (call: { readonly id: string }, columns: Readonly<Record<string, unknown>>) =>
    sequelizeOf(mill).query(
      `UPDATE threadmill_tool_calls SET ${Object.keys(columns).map((column) => `${column} = $${column}`)} WHERE id = $id`,
      { bind: { ...columns, id: call.id }, type: QueryTypes.UPDATE },
    )
  const callsOf = (message: MessageRecord): Promise<ToolCallRecord[]> =>
    mill.models.ToolCall.findAll({ where: { messageId: message.id }, order: ['position'] })
  async function theCall(): Promise<ToolCallRecord> {
    const call = (await chat.messages()).flatMap((message) => message.toolCalls).at(-1)
    const record = await mill.models.ToolCall.findByPk(call?.id)
    if (record === null) throw new Error('The chat has no tool call')
    return record
  }

  for (const stored of ['[1, 2]', '"plain text"', '"{\\"a\\":1}"', '3', 'true', 'null', null]) {
    it(`has no arguments when ${stored ?? 'nothing'} is stored as them (S76)`, async () => {
      await answer('refund')
      await set(await theCall(), { arguments: stored })
      const call = await theCall()
      expect(call.arguments).to.deep.equal({})
      expect(call.get('arguments')).to.deep.equal({})
      expect(call.toLlm().arguments).to.deep.equal({})
      const [seen] = (await chat.messages()).flatMap((message) => message.toolCalls)
      expect(seen?.arguments).to.deep.equal({})
    })
  }

  it('has the arguments that the model passed, nested and empty ones', async () => {
    const passed = [{ city: 'Oslo', n: 3, deep: { list: [1, 'a', null, { b: false }] } }, {}]
    const message = await chat.addMessage({
      role: 'assistant',
      toolCalls: passed.map((args) => ({ name: 'look', arguments: args })),
    })
    const calls = await callsOf(message)
    expect(calls.map((call) => call.arguments)).to.deep.equal(passed)
  })

  it('runs while its claim is in the future and it has no result', async () => {
    await answer('refund')
    expect((await theCall()).running()).to.equal(false)
    await set(await theCall(), { claimed_until: at(60_000) })
    expect((await theCall()).running()).to.equal(true)
    await set(await theCall(), { claimed_until: at(-1) })
    expect((await theCall()).running()).to.equal(false)
    await set(await theCall(), { claimed_until: at(60_000) })
    const { toolCallId } = await theCall()
    await chat.addMessage({ role: 'tool', toolCallId, content: 'done' })
    expect((await theCall()).resultId).to.be.a('string')
    expect((await theCall()).running()).to.equal(false)
  })

  it('is paused while something is stored that it waits on', async () => {
    await answer('refund')
    const states: [string | null, boolean][] = [
      [null, false],
      ['{}', false],
      ['{"task":{"id":"t1"}}', true],
      ['null', false],
    ]
    for (const [state, paused] of states) {
      await set(await theCall(), { mcp_state: state })
      expect((await theCall()).paused(), String(state)).to.equal(paused)
    }
  })

  it('gives itself as a plain value', async () => {
    await answer('refund')
    await set(await theCall(), {
      provider_call_id: 'call_0',
      namespace: 'shop',
      malformed_arguments: '{"order":',
      thought_signature: 'c2ln',
      remote: 1,
    })
    const call = await theCall()
    expect(call.toLlm()).to.deep.equal({
      id: call.toolCallId,
      providerCallId: 'call_0',
      name: 'refund',
      namespace: 'shop',
      arguments: { of: 'refund' },
      malformedArguments: '{"order":',
      thoughtSignature: 'c2ln',
      remote: true,
    })
  })

  it('is reached from its message, the oldest call first, however ids sort', async () => {
    const names = ['first', 'second', 'third']
    const message = await answer(...names)
    const calls = await callsOf(message)
    // Ids that sort the other way round.
    for (const [index, call] of calls.entries()) await set(call, { id: `${9 - index}${call.id.slice(1)}` })
    const named = (records: readonly ToolCallRecord[] | undefined) => records?.map((call) => call.name)
    const found = await mill.models.Message.findByPk(message.id, { include: 'toolCalls' })
    expect(named(found?.toolCalls), 'included').to.deep.equal(names)
    const all = await mill.models.Message.findAll({ where: { chatId: chat.id }, include: ['toolCalls'] })
    expect(named(all.find(({ id }) => id === message.id)?.toolCalls), 'included in many').to.deep.equal(names)
    const through = message as unknown as { getToolCalls(): Promise<ToolCallRecord[]> }
    expect(named(await through.getToolCalls()), 'asked for').to.deep.equal(names)
  })

  it('is reached from the message that answers it, and reaches both of its messages', async () => {
    const asking = await answer('first', 'second')
    const [, second] = await callsOf(asking)
    const result = await chat.addMessage({ role: 'tool', toolCallId: second?.toolCallId ?? '', content: 'done' })
    const [withParent] = await mill.models.Message.findAll({ where: { id: result.id }, include: 'parentToolCall' })
    expect(withParent?.parentToolCall?.name).to.equal('second')
    const calls = await mill.models.ToolCall.findAll({
      where: { messageId: asking.id },
      include: ['message', 'result'],
      order: ['position'],
    })
    expect(calls.map((call) => call.message?.id)).to.deep.equal([asking.id, asking.id])
    expect(calls.map((call) => call.result?.content ?? null)).to.deep.equal([null, 'done'])
  })

  it('can be queried, counted and scoped like any other', async () => {
    await answer('weather', 'search', 'weather')
    const { ToolCall } = mill.models
    expect(await ToolCall.count({ where: { name: 'weather', chatId: chat.id } })).to.equal(2)
    ToolCall.addScope('searches', { where: { name: 'search' } })
    expect(await ToolCall.scope('searches').count({ where: { chatId: chat.id } })).to.equal(1)
  })

  it('can’t be made or changed through its model', async () => {
    await answer('refund')
    const call = await theCall()
    const { ToolCall } = mill.models
    const before = (await theCall()).get({ plain: true })
    const where = { id: call.id }
    const values = { ...before, id: `${call.id.slice(0, -1)}x`, toolCallId: 'call_made', position: 9 }
    const acts: Readonly<Record<string, () => Promise<unknown>>> = {
      create: () => ToolCall.create(values),
      bulkCreate: () => ToolCall.bulkCreate([values]),
      findOrCreate: () => ToolCall.findOrCreate({ where: { toolCallId: 'call_made' }, defaults: values }),
      upsert: () => ToolCall.upsert(values),
      update: () => ToolCall.update({ approval: 'approved' }, { where }),
      increment: () => ToolCall.increment('position', { where }),
      'record.save': () => call.set('approval', 'approved').save(),
      'record.update': () => call.update({ approval: 'denied' }),
      'record.increment': () => call.increment('position'),
      'record.decrement': () => call.decrement('position'),
      'build.save': () => ToolCall.build(values).save(),
    }
    for (const [name, act] of Object.entries(acts)) {
      const error = await rejectionOf(act()).catch((absent: Error) => absent)
      expect(error, name).to.be.instanceOf(ReadOnlyModelError).and.have.property('code', 'read_only_model')
    }
    expect((await theCall()).get({ plain: true })).to.deep.equal(before)
    expect(await ToolCall.count({ where: { chatId: chat.id } })).to.equal(1)
  })
})

function sequelizeOf(mill: Threadmill) {
  const { sequelize } = mill.models.Chat
  if (sequelize === undefined) throw new Error('The models have no connection')
  return sequelize
}

/** A time from now in the text form that both databases keep. */
function at(ms: number): string {
  return new Date(Date.now() + ms).toISOString().replace('T', ' ').replace('Z', '')
}
