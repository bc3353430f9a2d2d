import { expect } from 'chai'
import fc from 'fast-check'
import {
  InvalidMessageError,
  MessageBase,
  TextMessage,
  ToolCallMessage,
  ToolMessage,
  ToolResultMessage,
  UserMessage,
} from '../../src/index.ts'

const call = (id = 'call_1') => new ToolMessage({ id, name: 'get_weather', input: { city: 'Oslo' } })
const asks = () => new ToolCallMessage({ role: 'assistant', tools: [call()] })
const refused = (act: () => unknown, message: RegExp) => expect(act).to.throw(InvalidMessageError, message)

describe('Message values', () => {
  it('of calls say what they are (M1)', () => {
    const message = asks()
    expect([message.type, message.content, message.stopReason]).to.deep.equal(['tool_call', null, 'tool'])
    expect([message.toolCall(), message.assistant(), message.toolStop()]).to.deep.equal([true, true, true])
    expect([message.text(), message.stopped(), message.user(), message.toolResult(), message.system()]).to.deep.equal([
      false,
      false,
      false,
      false,
      false,
    ])
  })

  it('of calls have just these keys in this order, as JSON too (M2)', () => {
    const hash = asks().toHash()
    expect(Object.keys(hash)).to.deep.equal(['type', 'role', 'tools', 'stop_reason'])
    const [tool] = hash.tools as object[]
    expect(tool).to.deep.equal({ type: 'tool', id: 'call_1', name: 'get_weather', input: { city: 'Oslo' } })
    expect(Object.keys(tool ?? {})).to.deep.equal(['type', 'id', 'name', 'input'])
    expect(JSON.parse(JSON.stringify(asks()))).to.deep.equal(hash)
  })

  it('take calls as instances and as objects, in their order (M3)', () => {
    const own = call('own')
    const message = new ToolCallMessage({ role: 'assistant', tools: [{ id: 'a', name: 'x', input: {} }, own] })
    expect(message.tools.map((tool) => [tool instanceof ToolMessage, tool.id])).to.deep.equal([
      [true, 'a'],
      [true, 'own'],
    ])
    expect(message.tools[1]).to.equal(own)
    expect(message.tools.map(({ name, input }) => [name, input])).to.deep.equal([
      ['x', {}],
      ['get_weather', { city: 'Oslo' }],
    ])
  })

  it('read arguments of a call as its input, which wins where both are there (M4)', () => {
    expect(ToolMessage.fromHash({ id: 'a', name: 'x', arguments: { b: 1 } }).input).to.deep.equal({ b: 1 })
    expect(ToolMessage.fromHash({ id: 'a', name: 'x', input: {}, arguments: { b: 1 } }).input).to.deep.equal({})
    expect(ToolMessage.fromHash({ id: 'a', name: 'x', input: null, arguments: { b: 1 } }).input).to.deep.equal({ b: 1 })
    expect(ToolMessage.fromHash({}).toHash()).to.deep.equal({ type: 'tool', id: null, name: null, input: {} })
    expect(new ToolMessage({ id: null, name: 'x', input: null }).input).to.deep.equal({})
    refused(() => new ToolMessage({ id: 'a', name: 'x' } as never), /needs input/)
    refused(() => ToolMessage.fromHash('x' as never), /not a text/)
  })

  it('name the place of what is no call, before a wrong role (M5)', () => {
    for (const wrong of ['x', 7, null, [call()], new Date()]) {
      const make = () => new ToolCallMessage({ role: 'nobody' as never, tools: [call(), wrong as never] })
      refused(make, /tools\[1\] of a ToolCallMessage must be a ToolMessage or an object/)
    }
  })

  it('know four roles (M6)', () => {
    for (const role of ['tool', 'developer', 'ASSISTANT', '', null, undefined]) {
      for (const make of [
        () => new TextMessage({ role: role as never, content: 'x' }),
        () => new ToolCallMessage({ role: role as never, tools: [call()] }),
      ]) {
        refused(make, role === undefined ? /needs role/ : /must be one of system, user, assistant, tool_result/)
      }
    }
    expect(new TextMessage({ role: 'tool_result', content: 'x' }).toolResult()).to.equal(false)
  })

  it('know two stop reasons; stop turns both predicates, null is tool for calls (M7)', () => {
    for (const stopReason of ['tool_calls', 'length', 'end_turn', '', 'Stop']) {
      for (const make of [
        () => new TextMessage({ role: 'user', content: 'x', stopReason: stopReason as never }),
        () => new ToolCallMessage({ role: 'assistant', tools: [call()], stopReason: stopReason as never }),
        () => new ToolResultMessage({ tool: call(), content: 1, stopReason: stopReason as never }),
      ]) {
        refused(make, /tool, stop/)
      }
    }
    const stopped = new ToolCallMessage({ role: 'assistant', tools: [], stopReason: 'stop' })
    expect([stopped.stopped(), stopped.toolStop()]).to.deep.equal([true, false])
    expect(new ToolCallMessage({ role: 'assistant', tools: [], stopReason: null }).stopReason).to.equal('tool')
  })

  it('want a list of calls, which may be empty (M8)', () => {
    refused(() => new ToolCallMessage({ role: 'assistant', tools: null as never }), /are a list, not null/)
    refused(() => new ToolCallMessage({ role: 'assistant', tools: {} as never }), /are a list, not an object/)
    expect(new ToolCallMessage({ role: 'assistant', tools: [] }).tools).to.deep.equal([])
    refused(() => new ToolCallMessage({ role: 'assistant', tools: [], content: 'x' } as never), /takes no content/)
  })

  it('of text leave out what is null (M9)', () => {
    const keys = (message: TextMessage) => Object.keys(message.toHash())
    expect(keys(new TextMessage({ role: 'user', content: 'x' }))).to.deep.equal(['type', 'role', 'content'])
    const stopped = new TextMessage({ role: 'assistant', content: 'x', stopReason: 'stop' })
    expect(keys(stopped)).to.deep.equal(['type', 'role', 'content', 'stop_reason'])
    const empty = new TextMessage({ role: 'assistant', content: null })
    expect(keys(empty)).to.deep.equal(['type', 'role'])
    refused(() => MessageBase.fromHash(empty.toHash()), /needs content/)
  })

  it('of results tell success from failure by their keys, after JSON too (M10, M12)', () => {
    const answers = (content: unknown) => {
      const message = new ToolResultMessage({ tool: call(), content })
      const again = MessageBase.fromHash(JSON.parse(JSON.stringify(message))) as ToolResultMessage
      expect([again.success(), again.isError()]).to.deep.equal([message.success(), message.isError()])
      return [message.success(), message.isError(), message.data, message.error]
    }
    expect(answers({ data: null })).to.deep.equal([true, false, null, null])
    expect(answers({ error: 'x' })).to.deep.equal([false, true, null, 'x'])
    expect(answers('text')).to.deep.equal([false, false, null, null])
    expect(answers({ data: 1, error: 'x' })).to.deep.equal([true, true, 1, 'x'])
    expect(answers({ other: 1 })).to.deep.equal([false, false, null, null])
  })

  it('of results keep a content that is null (M11)', () => {
    const hash = new ToolResultMessage({ tool: call(), content: null }).toHash()
    expect(Object.keys(hash)).to.deep.equal(['type', 'role', 'tool', 'content', 'stop_reason'])
    expect(hash.content).to.equal(null)
    for (const tool of [null, 'x']) {
      refused(() => new ToolResultMessage({ tool: tool as never, content: 1 }), /must be a ToolMessage|needs tool/)
    }
  })

  it('are parsed by their type, on any class; other keys are ignored (M13)', () => {
    expect(MessageBase.fromHash({ role: 'user', content: 'x', id: 7 })).to.be.instanceOf(TextMessage)
    expect(ToolResultMessage.fromHash({ ...asks().toHash() })).to.be.instanceOf(ToolCallMessage)
    refused(() => MessageBase.fromHash({ type: 'image', role: 'user', content: 'x' }), /text, tool_call, tool_result/)
    const result = MessageBase.fromHash({ type: 'tool_result', role: 'user', tool: { id: 'a', name: 'x', input: {} } })
    expect([result.role, result.content]).to.deep.equal(['tool_result', null])
    for (const hash of [
      { type: 'tool_call', role: 'assistant', tools: null },
      { type: 'tool_call', tools: [] },
      { type: 'tool_result', content: 1 },
      { role: 'user' },
      null,
      'x',
    ]) {
      refused(() => MessageBase.fromHash(hash as never), /./)
    }
  })

  it('keep what somebody said out of the errors that refuse it (M5)', () => {
    const said = 'card 4111' as never
    for (const make of [
      () => new TextMessage(said),
      () => new ToolCallMessage({ role: 'assistant', tools: said }),
      () => new ToolCallMessage({ role: 'assistant', tools: [said] }),
      () => new ToolResultMessage({ tool: said, content: 1 }),
      () => new UserMessage('Hi', said),
      () => ToolMessage.fromHash(said),
      () => MessageBase.fromHash(said),
    ]) {
      refused(make, /^(?!.*4111).*a text/)
    }
    for (const number of [4111, 4111n, Symbol('4111')] as never[]) {
      refused(() => new ToolCallMessage({ role: 'assistant', tools: number }), /^(?!.*4111).*a (number|bigint|symbol)/)
    }
  })

  it('are equal by what they say, after parsing too; order counts for calls, not for keys (M14)', () => {
    const json = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as unknown)
    const input = fc.dictionary(fc.string(), json).map((given) => ({ ...given }))
    const tool = fc.record({ id: fc.string(), name: fc.string(), input }, { noNullPrototype: true })
    const stopReason = fc.constantFrom('tool' as const, 'stop' as const, null)
    const role = fc.constantFrom('system' as const, 'user' as const, 'assistant' as const)
    const message = fc.oneof(
      fc
        .tuple(role, fc.string(), stopReason)
        .map(([of, content, stop]) => new TextMessage({ role: of, content, stopReason: stop })),
      fc
        .tuple(fc.array(tool), stopReason)
        .map(([tools, stop]) => new ToolCallMessage({ role: 'assistant', tools, stopReason: stop })),
      fc
        .tuple(tool, json, stopReason)
        .map(([of, content, stop]) => new ToolResultMessage({ tool: of, content, stopReason: stop })),
    )
    fc.assert(
      fc.property(message, (made) => {
        const again = MessageBase.fromHash(made.toHash())
        const parsed = MessageBase.fromHash(JSON.parse(JSON.stringify(made)))
        expect([again.equals(made), parsed.equals(made), again === made]).to.deep.equal([true, true, false])
      }),
    )
    const one = new ToolMessage({ id: 'a', name: 'x', input: { b: 1, c: 2 } })
    const other = new ToolMessage({ id: 'a', name: 'x', input: { c: 2, b: 1 } })
    expect([one.equals(other), one === other]).to.deep.equal([true, false])
    expect(ToolMessage.fromHash(one.toHash()).equals(one)).to.equal(true)
    const of = (...tools: ToolMessage[]) => new ToolCallMessage({ role: 'assistant', tools })
    expect(of(one, call()).equals(of(call(), one))).to.equal(false)
    expect(asks().equals(new TextMessage({ role: 'assistant', content: 'x' }))).to.equal(false)
  })
})

describe('A user message', () => {
  it('has an id, metadata, and only what was given (M15)', () => {
    const message = new UserMessage('Hi')
    expect(message.id).to.match(/^[0-9a-f-]{36}$/)
    expect(Object.keys(message.toHash())).to.deep.equal(['content', 'metadata', 'id', 'created_at'])
    expect(message.toHash().created_at).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
    const full = new UserMessage('Hi', { sessionId: 's', systemPrompt: 'p', metadata: { a: 1 }, id: 'i' })
    expect(full.toHash()).to.deep.include({ session_id: 's', system_prompt: 'p', metadata: { a: 1 }, id: 'i' })
    refused(() => new UserMessage('Hi', { session: 's' } as never), /takes no session/)
  })

  it('is made from anything, and never fails (M15)', () => {
    const message = new UserMessage('Hi')
    expect(UserMessage.from(message)).to.equal(message)
    const contents = [
      42,
      null,
      undefined,
      'x',
      { content: 'y', session_id: 's', created_at: 1 },
      new TextMessage({ role: 'user', content: 'z' }),
    ]
    expect(contents.map((given) => UserMessage.from(given).content)).to.deep.equal(['42', '', '', 'x', 'y', 'z'])
    const cycle: unknown[] = []
    cycle.push(cycle)
    const noJson = [cycle, [1n], { content: cycle }, { content: { toJSON: () => undefined } }, Symbol('s'), () => 1]
    for (const given of noJson) expect(UserMessage.from(given).content).to.be.a('string').that.is.not.empty
    expect(UserMessage.from({ content: 'y', session_id: 's' }).sessionId).to.equal('s')
    expect(String(message)).to.equal('Hi')
    expect(message.toMessage().toHash()).to.deep.equal({ type: 'text', role: 'user', content: 'Hi' })
  })
})
