import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { expect } from 'chai'
import { readSignatures } from '../../scripts/parity/signatures.ts'
import { defineAgent, type Threadmill, ThreadmillError } from '../../src/index.ts'
import { text, toolCalls } from '../../src/testing/index.ts'
import { allRows } from '../support/all-rows.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

const huge = 'x'.repeat(9 * 1024 * 1024)
const texts = [null, 7, {}, '', huge]
const functions = [null, undefined, 7, 'f', {}]
const ids = ['nobody', '', null, undefined, 7, {}, huge]
const noFunctions = [null, 7, 'f', {}]
const one = (values: readonly unknown[]): readonly unknown[][] => values.map((value) => [value])

const third = ([value]: readonly unknown[]) => ['x', {}, value]
const withOptions = (...more: object[]) =>
  [null, 7, { transaction: {} }, ...more].map((options) => ['x', options] as const)
const badDecisions = (call: string) =>
  [
    null,
    { by: '' },
    { by: 7 },
    { reason: 7 },
    { wake: 'no' },
    { ifUndecided: 1 },
    { argumentsHash: 'other' },
    { argumentsHash: 7 },
    { transaction: {} },
    { because: 'x' },
  ].map((options) => [call, options] as const)
const badWishes = [
  null,
  7,
  { transaction: {} },
  { delayMs: 'x' },
  { delayMs: -1 },
  { delayMs: Number.NaN },
  { delayMs: Number.POSITIVE_INFINITY },
  { delayMs: 1e18 },
  { priority: 'x' },
  { priority: -1 },
  { delay: 5 },
].map((options) => ['CHAT', options] as const)

/** What each public method is called with in vain; `[]` for one that takes nothing that could be wrong. */
const table: Readonly<Record<string, readonly (readonly unknown[])[]>> = {
  // What is sent
  'Chat.ask': [...one(texts), ...withOptions({ attachments: 7 }, { enqueue: 'yes' }), ...one(noFunctions).map(third)],
  'Chat.askLater': [...one(texts), ...withOptions({ attachments: 'no/such/file' }, { enqueue: 1 }, { enqeue: true })],
  'Chat.queue': [
    ...one(texts),
    ...withOptions(
      { attachments: { data: 7 } },
      { steer: 'no' },
      { wake: 0 },
      { owner: 1n },
      { owner: huge },
      { ster: true },
    ),
  ],
  'Chat.post': [
    ...one(texts),
    ...[
      null,
      7,
      { whileRunning: 'wait' },
      { steer: true },
      { wake: 'no' },
      { owner: () => 'anna' },
      { transaction: {} },
    ].map((options) => ['x', options]),
    ['x', { attachments: 7 }],
  ],
  'Chat.receipt': one([null, undefined, 7, {}, { id: 7 }]),
  'Chat.addMessage': one([
    null,
    undefined,
    7,
    'x',
    {},
    [],
    { role: 'robot', content: 'x' },
    { role: 'user' },
    { role: 'user', content: huge },
    { role: 'tool', content: 'x', toolCallId: 'nobody', attachments: 7 },
  ]),
  'Chat.compact': one([null, 7, 'x', { keep: -1 }, { model: '' }, { depth: 1 }]),
  'Chat.complete': one(noFunctions),
  'Chat.step': one(noFunctions),
  'Chat.generate': one(noFunctions),
  'Chat.runTools': [],
  // Decisions
  'Chat.approve': [
    ...one(ids),
    ['CALL', { by: 7 }],
    ['CALL', { arguments: 7 }],
    ['CALL', { arguments: { note: huge } }],
    ['CALL', { remember: 'yes' }],
    ['CALL', { rember: true }],
    ...badDecisions('CALL'),
    ['OTHER CALL'],
  ],
  'Chat.deny': [...one(ids), ['CALL', { reason: huge }], ...badDecisions('CALL'), ['OTHER CALL']],
  'Chat.answer': [
    ...ids.map((id) => [id, { x: 'y' }]),
    ...[{}, { x: 7 }, { y: 'x' }, { x: huge }, null, undefined, 7, 'x'].map((values) => ['QUESTION', values]),
    ['QUESTION', { x: 'y' }, null],
    ['QUESTION', { x: 'y' }, { by: 7 }],
    ['QUESTION', { x: 'y' }, { ifUndecided: true }],
    ['OTHER QUESTION', { x: 'y' }],
  ],
  'Chat.decline': [
    ...one(ids),
    ['QUESTION', null],
    ['QUESTION', { by: 7 }],
    ['QUESTION', { reason: huge }],
    ['OTHER QUESTION'],
  ],
  'Chat.unqueue': one([null, undefined, 7, {}, { id: 7 }]),
  'Chat.cancel': one([null, 7, 'x', { turn: 'x' }, { turn: -1 }, { trun: 1 }]),
  // Settings
  'Chat.withTemperature': one(['1', 3, undefined, {}]),
  'Chat.withMaxOutputTokens': one(['1', 0, 1.5, undefined]),
  'Chat.withProviderOptions': one([7, 'x', [], undefined]),
  'Chat.withEndUser': one([7, '', huge, undefined]),
  'Chat.withSchema': one([7, 'x', { type: 'string' }, undefined]),
  'Chat.withToolOptions': one([7, 'x', { choice: 'nobody' }, { speed: 1 }, undefined]),
  'Chat.withThinking': one([7, 'x', { effort: 'x' }, undefined]),
  'Chat.withCitations': one([7, 'x', undefined]),
  'Chat.withCaching': one([7, 'x', { ttl: 1 }, undefined]),
  'Chat.withCompaction': one([7, 'x', { at: 0 }, undefined]),
  'Chat.withFallbacks': [[], ['', 'x'], [7], [{ provider: 'x' }]],
  'Chat.withHeaders': one([7, 'x', { 'a b': 'x' }, { a: 'x\n' }, undefined]),
  'Chat.withContext': one([7, 'x', { apiKey: 7 }, { secret: 'x' }, undefined]),
  'Chat.withTools': [['nobody'], [7], [{ name: 7 }, 'x'], [undefined], [null, 'x']],
  'Chat.withInstructions': [[7], [undefined], [{}], [huge], ['x', { cacheUntilHere: { ttl: 'long' } }]],
  'Chat.withInputs': one([7, 'x', [], undefined]),
  'Chat.transferTo': [
    ...one([...ids, { name: 7 }]),
    ['nobody', { agentElsewhere: 'yes' }],
    ['nobody', { agentElsewhere: true, inputs: [] }],
    ['nobody', { agentElsewhere: true, colour: 'red' }],
    ['nobody', { agentElsewhere: true, transaction: {} }],
  ],
  'Chat.withModel': [...one([7, '', huge, {}, undefined]), ...withOptions({ protocol: 'x' }, { protocl: 'x' })],
  'Chat.cacheUntilHere': one([{ ttl: 'long' }, { ttl: '' }]),
  'Chat.convertUnsupportedAttachments': one(functions),
  ...Object.fromEntries(
    [
      'beforeRequest',
      'beforeMessage',
      'afterMessage',
      'beforeToolCall',
      'afterToolResult',
      'afterToolProgress',
      'beforeFallback',
      'afterFallback',
      'afterQueue',
      'afterDequeue',
      'afterUnqueue',
    ].map((hook) => [`Chat.${hook}`, one(functions)]),
  ),
  'Chat.edit': [
    ...ids.map((id) => [id, 'x']),
    ['nobody', 7],
    ['nobody', huge],
    ...[null, 7, { waitMs: -1 }, { wait: 1 }].map((options) => ['nobody', 'x', options]),
  ],
  'Chat.regenerate': one([null, 7, { at: 'nobody' }, { at: huge }, { waitMs: 'x' }, { att: 'x' }]),
  'Chat.delete': [],
  // Reading
  'Chat.page': one([null, 7, { limit: 0 }, { before: 'x' }, { state: 'x' }]),
  'Chat.search': [...one([null, 7, '', {}]), ['x', { limit: 0 }]],
  'Chat.events': one([null, 7, { after: 'x' }, { after: 7 }, { aftr: '0' }, { history: 'x' }, { signal: 7 }]),
  'Chat.each': one(noFunctions),
  'Chat.countTokens': one([null, 7, {}, '', huge]),
  ...Object.fromEntries(
    [
      'awaitingApproval',
      'awaitingInput',
      'awaitingSubChats',
      'awaitingTasks',
      'cancelled',
      'cost',
      'decisions',
      'diagnosis',
      'failure',
      'isComplete',
      'messages',
      'modelRow',
      'pendingApprovals',
      'pendingInputs',
      'pendingTasks',
      'queuedMessages',
      'reload',
      'render',
      'running',
      'save',
      'subChats',
      'toLlm',
      'tokens',
      'transcript',
      'waiting',
      '[Symbol.asyncIterator]',
    ].map((reader) => [`Chat.${reader}`, []]),
  ),
  // Beside chats
  'Chats.create': one([
    null,
    7,
    'x',
    { agent: 'nobody' },
    { model: '' },
    { owner: 7 },
    { temperature: 3 },
    { colour: 'red' },
    { owner: huge },
    { inputs: [] },
    { inputs: { x: 1 } },
  ]).concat([null, 7, { agentElsewere: true }, { agentElsewhere: 'x' }, { transaction: {} }].map((how) => [{}, how])),
  'Chats.find': one(ids),
  'Chats.delete': one(ids),
  'Chats.fork': [
    ...one(ids),
    ...[null, 7, { at: 'nobody' }, { att: 0 }, { transaction: {} }].map((options) => ['CHAT', options]),
  ],
  'Chats.list': one([null, 7, { limit: 0 }, { before: 'x' }, { state: 'x' }, { colour: 'red' }]),
  'Chats.search': [...one([null, 7, '', {}]), ['x', { limit: 0 }], ['x', { owner: 7 }]],
  'Chats.from': one([null, undefined, 7, {}]),
  'Approvals.list': one([null, 7, { limit: 0 }, { before: 'x' }, { owner: '' }, { state: 'x' }]),
  'Usages.total': one([7, 'x', { owner: '' }, { colour: 'red' }]),
  ...Object.fromEntries(
    ['CompleteJob', 'RunToolsJob', 'CompactJob'].flatMap((job) => [
      [`${job}.enqueue`, [...one(ids), ...badWishes]],
      [`${job}.perform`, one(['nobody', '', null, undefined, 7])],
    ]),
  ),
  // The same in memory
  'LlmChat.ask': one(texts),
  'LlmChat.askLater': one(texts),
  'LlmChat.addMessage': one([null, undefined, 7, 'x', {}, []]),
  'LlmChat.complete': one(noFunctions),
  'LlmChat.step': one(noFunctions),
  'LlmChat.generate': one(noFunctions),
  'LlmChat.compact': one([null, 7, { keep: -1 }]),
  'LlmChat.runTools': [],
  'LlmChat.[Symbol.iterator]': [],
  // The process
  'Threadmill.startWorkers': one([
    null,
    7,
    { complete: -1 },
    { compact: 1.5 },
    { runTools: 'x' },
    { complet: 1 },
    { isolate: {} },
    { isolate: { app: '' } },
    { isolate: { app: 'a.ts', logLevel: 'loud' } },
    { isolate: { app: 'a.ts', apps: 1 } },
  ]),
  'Threadmill.attachment': one([null, undefined, 7, 'x', {}]),
  'Threadmill.purgeAttachments': one([null, 7, { unusedForMs: -1 }, { unusedForMs: 'x' }, { unused: 1 }]),
  'Threadmill.transaction': one(functions),
  'Threadmill.board': one([null, 7, { writable: 'yes' }, { chatUrl: '/chats' }, { readOnly: true }]),
  'Threadmill.serveProbe': one([
    null,
    undefined,
    7,
    {},
    { port: -1 },
    { port: '80' },
    { port: 0, host: 7 },
    { ports: 1 },
  ]),
  'Threadmill.metrics': [],
  'Threadmill.close': [],
  'Pool.ready': [],
  'Pool.close': [],
}
/** Has a table of its own. */
const elsewhere: Readonly<Record<string, string>> = {
  'Threadmill.connect': 'chat/bad-start.test.ts',
}

onEachDatabase('Every public method', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 45_000 })
  const signatures = [...readSignatures(join(import.meta.dirname, '../..')).entries()]
  const methods = signatures
    .filter(
      ([name, signature]) =>
        /^(Threadmill|Chat|LlmChat|Chats|Approvals|Usages|Pool|CompleteJob|RunToolsJob|CompactJob)\./.test(name) &&
        signature.includes('('),
    )
    .map(([name]) => name)
    .filter((name) => !/\.constructor$/.test(name))

  it('stands in the table of what it refuses', () => {
    expect(methods.toSorted()).to.deep.equal([...Object.keys(table), ...Object.keys(elsewhere)].toSorted())
    for (const file of Object.values(elsewhere))
      expect(existsSync(join(import.meta.dirname, '..', file))).to.equal(true)
  })

  /** A chat that waits for a decision, another chat whose call it is not, and what a name of the table means. */
  async function setUp() {
    const asked = ['guarded', 'guarded', 'asks', 'asks']
    await bench.script([...asked.map((name) => toolCalls([call(name, freshId())])), text('x')])
    const asks = recording('asks', [], {}, ({ ask }) => ask({ message: 'What?', fields: [{ name: 'x' }] }))
    const agent = defineAgent({
      name: freshName(),
      tools: [recording('guarded', [], { requiresApproval: true }), asks],
    })
    const mill = await bench.connect({ agents: [agent] })
    const made = []
    for (const _ of asked) made.push(await (await mill.chats.create({ agent })).askLater('Go'))
    const [chat, other, asking, alike] = made
    if (chat === undefined || other === undefined || asking === undefined || alike === undefined) throw new Error('?')
    for (const one of made) await one.complete()
    const idle = await mill.chats.create({ agent })
    const llm = await idle.toLlm()
    const meant: Record<string, unknown> = {
      CALL: (await chat.pendingApprovals())[0]?.id,
      'OTHER CALL': (await other.pendingApprovals())[0]?.id,
      QUESTION: (await asking.pendingInputs())[0]?.id,
      'OTHER QUESTION': (await alike.pendingInputs())[0]?.id,
      CHAT: idle.id,
    }
    expect(Object.values(meant).every((id) => typeof id === 'string')).to.equal(true)
    const objectOf = (name: string): unknown => {
      if (name.startsWith('Chats.')) return mill.chats
      if (name.startsWith('Approvals.')) return mill.approvals
      if (name.startsWith('CompleteJob.')) return mill.jobs.complete
      if (name.startsWith('RunToolsJob.')) return mill.jobs.runTools
      if (name.startsWith('CompactJob.')) return mill.jobs.compact
      if (name.startsWith('Usages.')) return mill.usage
      if (name.startsWith('LlmChat.')) return llm
      if (name.startsWith('Threadmill.')) return mill
      if (name === 'Chat.answer' || name === 'Chat.decline') return asking
      return name === 'Chat.approve' || name === 'Chat.deny' ? chat : idle
    }
    const given = (args: readonly unknown[]) => args.map((arg) => (typeof arg === 'string' ? (meant[arg] ?? arg) : arg))
    return { mill, objectOf, given }
  }

  it('refuses what it does not take with an error of its own kind, and changes nothing', async function () {
    this.timeout(120_000)
    const { mill, objectOf, given } = await setUp()
    const before = await allRows(mill)
    const problems: string[] = []
    for (const [name, calls] of Object.entries(table)) {
      for (const args of calls) {
        const shown = `${name}(${args.map((arg) => inspect(arg, { maxStringLength: 20, breakLength: Number.POSITIVE_INFINITY })).join(', ')})`
        const thrown = await thrownBy(() =>
          (objectOf(name) as Record<string, (...all: unknown[]) => unknown>)[name.split('.')[1] ?? '']?.(
            ...given(args),
          ),
        )
        problems.push(...problemsOf(thrown).map((problem) => `${shown}: ${problem}`))
      }
    }
    expect(problems, problems.join('\n')).to.deep.equal([])
    expect(await allRows(mill)).to.deep.equal(before)
    expect(bench.model.requests).to.have.length(4)
  })
})

function problemsOf(thrown: unknown): string[] {
  if (!(thrown instanceof ThreadmillError)) return [String(thrown).slice(0, 200)]
  const codes = /^(argument|chat|configuration)/
  return [
    ...(codes.test(thrown.code) ? [] : [`its code is ${thrown.code}`]),
    ...(thrown.message.length < 2_000 ? [] : [`its message has ${thrown.message.length} characters`]),
  ]
}

async function thrownBy(act: () => unknown): Promise<unknown> {
  try {
    const result = await act()
    return (result as Threadmill | undefined) === undefined ? 'nothing' : `returned ${typeof result}`
  } catch (error) {
    return error
  }
}
