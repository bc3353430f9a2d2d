import { expect } from 'chai'
import * as z from 'zod'
import {
  ArgumentError,
  type Chat,
  ConfigurationError,
  defineAgent,
  defineTool,
  type JsonObject,
  type Threadmill,
} from '../../src/index.ts'
import { text as answer, toolCalls } from '../../src/testing/index.ts'
import { allRows } from '../support/all-rows.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { errorFrom } from '../tools/rows.ts'
import { lastCall, lastCalls } from './support/rows.ts'
import { call, freshId, freshName } from './support/tools.ts'

/** One text of each kind that a database, a driver or a wire has been seen to change. */
const texts: Readonly<Record<string, string>> = {
  'a letter of each plane': Array.from({ length: 17 }, (_, plane) => String.fromCodePoint(plane * 0x10000 + 0x41)).join(
    '',
  ),
  'the last code points of each plane': Array.from({ length: 17 }, (_, plane) =>
    String.fromCodePoint(plane * 0x10000 + 0xfffe, plane * 0x10000 + 0xffff),
  ).join(''),
  'all control characters': `${Array.from({ length: 33 }, (_, at) => String.fromCharCode(at)).join('')}\x7f\x80\x9f`,
  'nothing but a NUL': '\0',
  'NULs within': 'a\0b\0\0c',
  'a NUL at the end': 'end\0',
  'a byte order mark at its beginning': '\ufeffmark',
  'marks of direction': '\u202eabc\u202c \u2066x\u2069 \u200f\u200e',
  'emoji of many parts': '👩🏽‍🚀 🏳️‍🌈 👨‍👩‍👧‍👦 🇩🇪',
  'letters of marks': 'Z̸̢̛͎͖͝a̵͕̕l̴͙͌g̶͚̾o é e\u0301',
  'blanks at both ends': ' \t\n x \r\n\u00a0\u2028\u2029 ',
  'quotes and backslashes': `'"\`\\ \\' \\0 \\u0000 \\ud83d %_ $1 $content :x ? -- /* */ ;`,
  'JSON in a text': '{"a":"\\u0000","b":[1e999]}',
  'U+FFFD itself': 'a\ufffdb',
}
const long = `${'ä😀\0"\\'.repeat(40_000)}end`
const halves: Readonly<Record<string, string>> = {
  'the first half of a character': 'a\ud83d',
  'the second half of a character': '\ude00b',
  'halves in the wrong order': '\ude00\ud83d',
}

onEachDatabase('A text', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })
  const echo = defineTool({
    name: 'echo',
    description: 'Echoes.',
    parameters: z.record(z.string(), z.json()),
    requiresApproval: true,
    execute: ({ said }) => said as string,
  })

  async function chatWith(instructions: string, script: Parameters<typeof bench.script>[0], more: object = {}) {
    await bench.script(script)
    const agent = defineAgent({
      name: freshName(),
      tools: [echo],
      instructions,
      inputs: { type: 'object', additionalProperties: true },
    })
    const mill = await bench.connect({ agents: [agent] })
    return { mill, chat: await mill.chats.create({ agent, ...more }) }
  }

  for (const [what, said] of [...Object.entries(texts), ['200,000 letters in one line', long] as const]) {
    it(`of ${what} comes back as it was, wherever it is stored, and goes to the model so (E108)`, async () => {
      const id = freshId()
      const given: JsonObject = { said, [Array.from(said).slice(0, 100).join('')]: [said] }
      const round = toolCalls([call('echo', id, given)], { text: said })
      const { mill, chat } = await chatWith(said, [round, answer(said)], {
        providerOptions: { metadata: given },
        inputs: given,
      })
      await chat.ask(said)
      const pending = await lastCall(chat)
      const by = Array.from(said).slice(0, 100).join('')
      await chat.approve(pending, { by, reason: said, arguments: given })
      await chat.queue(said, { owner: given, wake: false })
      const [queued] = await chat.queuedMessages()
      expect([queued?.content, queued?.owner]).to.deep.equal([said, given])
      expect((await chat.complete())?.content).to.equal(said)

      const again = await mill.chats.find(chat.id)
      const contents = (await again.messages()).map(({ content }) => content)
      // The question, the round, its result, the queued message, the answer.
      expect(contents).to.deep.equal([said, said, said, said, said])
      const [stored] = await lastCalls(again)
      expect([stored?.arguments, stored?.editedArguments]).to.deep.equal([given, given])
      expect([stored?.decidedBy, stored?.decisionReason]).to.deep.equal([by, said])
      const [decision] = await again.decisions()
      expect([decision?.decidedBy, decision?.reason, decision?.value]).to.deep.equal([by, said, given])
      expect(again.inputs).to.deep.equal(given)
      expect(again.providerOptions).to.deep.equal({ metadata: given })

      const sent = bench.model.requests[1]?.messages ?? []
      expect(sent.slice(0, 3).map(({ content }) => content)).to.deep.equal([said, said, said])
      expect(JSON.parse(sent[2]?.tool_calls?.[0]?.function.arguments ?? '')).to.deep.equal(given)
      expect(sent[4]?.content).to.equal(said)
      expect(sent[3]?.content)
        .to.be.a('string')
        .that.satisfies((result: string) => result.startsWith(said))
    })
  }

  it('of an owner comes back as it was, and finds its chats alone (E108)', async () => {
    await bench.script([])
    const mill = await bench.connect()
    for (const [what, said] of Object.entries(texts)) {
      const owners = [said, { type: said, id: said }].filter((owner) => JSON.stringify(owner).length <= 250)
      for (const owner of owners) {
        const chat = await mill.chats.create({ owner })
        expect((await mill.chats.find(chat.id)).owner, what).to.deep.equal(owner)
        const { chats } = await mill.chats.list({ owner })
        expect(
          chats.map(({ id }) => id),
          what,
        ).to.deep.equal([chat.id])
      }
    }
  })

  for (const [what, half] of Object.entries(halves)) {
    it(`with ${what} is refused everywhere, by an error that says why, and nothing is stored (E108, E109)`, async () => {
      const { mill, chat } = await chatWith('Hi', [toolCalls([call('echo', freshId())])])
      await chat.ask('Echo')
      const pending = await lastCall(chat)
      const before = await allRows(mill)
      for (const [name, attempt] of attemptsWith(mill, chat, pending.id, half)) {
        const error = await errorFrom(async () => attempt())
        expect(error, name).to.be.instanceOf(ArgumentError)
        expect((error as Error).message, name).to.match(/half of a character|whole characters|is named by/)
      }
      expect(await allRows(mill)).to.deep.equal(before)
    })
  }

  it('that an agent is instructed with is refused with half of a character, before anything is sent (E108)', async () => {
    const half = 'a\ud83d'
    expect(() => defineAgent({ name: 'a', instructions: half })).to.throw(ArgumentError, 'half of a character')
    const agent = defineAgent({ name: freshName(), instructions: () => half })
    const model = await bench.script([])
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    const error = await errorFrom(() => chat.ask('Hi'))
    expect(error).to.be.instanceOf(ConfigurationError).with.property('message').that.contains('half of a character')
    expect(model.requests).to.have.length(0)
  })

  it('of JSON that is nested too deep is refused everywhere too (E109)', async () => {
    const { mill, chat } = await chatWith('Hi', [toolCalls([call('echo', freshId())])])
    await chat.ask('Echo')
    const pending = await lastCall(chat)
    const before = await allRows(mill)
    for (const levels of [40, 200_000]) {
      const deep = JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`) as JsonObject
      const attempts: [string, () => unknown][] = [
        ['approve', () => chat.approve(pending.id, { arguments: deep })],
        ['queue', () => chat.queue('x', { owner: deep })],
        ['post', () => chat.post('x', { owner: deep })],
        ['addMessage', () => chat.addMessage({ role: 'assistant', toolCalls: [{ name: 'f', arguments: deep }] })],
        ['withProviderOptions', () => chat.withProviderOptions(deep)],
        ['withInputs', () => chat.withInputs(deep)],
        ['create', () => mill.chats.create({ inputs: deep })],
      ]
      for (const [name, attempt] of attempts) {
        const error = await errorFrom(async () => attempt())
        expect(error, `${name}, ${levels}`).to.be.instanceOf(ArgumentError)
        expect((error as Error).message, `${name}, ${levels}`).to.match(/nested more than 31 levels|must be JSON/)
      }
    }
    expect(await allRows(mill)).to.deep.equal(before)
    const most = JSON.parse(`${'{"a":'.repeat(29)}1${'}'.repeat(29)}`) as JsonObject
    await chat.withProviderOptions(most).save()
    expect((await mill.chats.find(chat.id)).providerOptions).to.deep.equal(most)
  })

  it('that a tool throws or returns with half of a character is stored with U+FFFD in its place (E107)', async () => {
    const half = '\ud83d'
    const tool = (name: string, execute: () => unknown, onError: 'raise' | 'report') =>
      defineTool({ name, description: 'Does it.', parameters: z.object({}), execute, onError })
    const thrown = Object.assign(new Error(`${'x'.repeat(1999)}😀`), { code: `c${half}` })
    const agent = defineAgent({
      name: freshName(),
      tools: [
        tool('says', () => `a${half}`, 'report'),
        tool('reports', () => Promise.reject(new Error(`b${half}`)), 'report'),
        tool('fails', () => Promise.reject(thrown), 'raise'),
      ],
    })
    await bench.script([toolCalls(['says', 'reports', 'fails'].map((name) => call(name, freshId())))])
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    expect(await errorFrom(() => chat.ask('Go'))).to.equal(thrown)
    const results = (await chat.messages()).filter(({ role }) => role === 'tool').map(({ content }) => content)
    expect(results.slice(0, 2)).to.deep.equal(['a\ufffd', '{"error":"b\ufffd"}'])
    expect(await chat.failure()).to.deep.include({ code: 'c\ufffd', message: `${'x'.repeat(1999)}\ufffd` })
  })
})

/** Every way in which an application hands in a text. */
function attemptsWith(mill: Threadmill, chat: Chat, callId: string, half: string): [string, () => unknown][] {
  return [
    ['ask', () => chat.ask(half)],
    ['askLater', () => chat.askLater(half)],
    ['queue', () => chat.queue(half)],
    ['queue, owner', () => chat.queue('x', { owner: [half] })],
    ['post', () => chat.post(half)],
    ['post, owner', () => chat.post('x', { owner: { [half]: 1 } })],
    ['edit', () => chat.edit('none', half)],
    ['addMessage', () => chat.addMessage({ role: 'user', content: half })],
    ['addMessage, name', () => chat.addMessage({ role: 'assistant', toolCalls: [{ name: half }] })],
    [
      'addMessage, arguments',
      () => chat.addMessage({ role: 'assistant', toolCalls: [{ name: 'f', arguments: { a: [half] } }] }),
    ],
    ['addMessage, reason', () => chat.addMessage({ role: 'assistant', content: 'x', finishReason: half })],
    ['approve, by', () => chat.approve(callId, { by: half })],
    ['approve, arguments', () => chat.approve(callId, { arguments: { said: half } })],
    ['deny, reason', () => chat.deny(callId, { reason: half })],
    ['withInstructions', () => chat.withInstructions(half)],
    ['withInputs', () => chat.withInputs({ a: half })],
    ['withProviderOptions', () => chat.withProviderOptions({ a: half })],
    ['withEndUser', () => chat.withEndUser(half)],
    ['withModel', () => chat.withModel(half)],
    ['withToolOptions', () => chat.withToolOptions({ choice: half })],
    ['create, owner', () => mill.chats.create({ owner: half })],
    ['create, typed owner', () => mill.chats.create({ owner: { type: 'a', id: half } })],
    ['create, model', () => mill.chats.create({ model: half })],
    ['create, inputs', () => mill.chats.create({ inputs: { [half]: 1 } })],
    ['create, endUser', () => mill.chats.create({ endUser: half })],
    ['create, agent', () => mill.chats.create({ agent: half }, { agentElsewhere: true })],
    ['transferTo', () => chat.transferTo(half, { agentElsewhere: true })],
  ]
}
