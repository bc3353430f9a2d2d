import { join } from 'node:path'
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
const one = (values: readonly unknown[]): readonly unknown[][] => values.map((value) => [value])

/** What each public method is called with in vain; `[]` for one that takes nothing that could be wrong. */
const table: Readonly<Record<string, readonly (readonly unknown[])[]>> = {
  // What is sent
  'Chat.ask': [...one(texts), ['x', { attachments: 7 }], ['x', { transaction: {} }]],
  'Chat.askLater': [...one(texts), ['x', { attachments: 'no/such/file' }], ['x', { transaction: {} }]],
  'Chat.queue': [...one(texts), ['x', { attachments: { data: 7 } }]],
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
  'Chat.complete': [],
  'Chat.step': [],
  'Chat.generate': [],
  'Chat.runTools': [],
  // Decisions
  'Chat.approve': [
    ...one(ids),
    ['CALL', { by: 7 }],
    ['CALL', { arguments: 7 }],
    ['CALL', { argumentsHash: 'other' }],
    ['OTHER CALL'],
  ],
  'Chat.deny': [...one(ids), ['CALL', { reason: 7 }], ['CALL', { argumentsHash: 'other' }], ['OTHER CALL']],
  'Chat.answer': [...ids.map((id) => [id, { x: 1 }]), ['CALL:ask-1', {}]],
  'Chat.decline': [...one(ids), ['CALL:ask-1'], ['CALL:ask-1', { by: 7 }]],
  'Chat.unqueue': [],
  'Chat.cancel': [],
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
  'Chat.withModel': one([7, '', huge, {}, undefined]),
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
  'Chat.edit': [...ids.map((id) => [id, 'x']), ['nobody', 7], ['nobody', huge], ['nobody', 'x', { waitMs: -1 }]],
  'Chat.regenerate': one([{ at: 'nobody' }, { at: huge }, { waitMs: 'x' }]),
  'Chat.delete': [],
  // Reading
  'Chat.page': one([null, 7, { limit: 0 }, { before: 'x' }, { state: 'x' }]),
  'Chat.search': [...one([null, 7, '', {}]), ['x', { limit: 0 }]],
  'Chat.events': one([{ after: 'x' }, { after: 7 }]),
  ...Object.fromEntries(
    [
      'awaitingApproval',
      'awaitingInput',
      'awaitingSubChats',
      'awaitingTasks',
      'cancelled',
      'cost',
      'countTokens',
      'decisions',
      'diagnosis',
      'each',
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
  ]),
  'Chats.find': one(ids),
  'Chats.delete': one(ids),
  'Chats.fork': [...one(ids), ['CHAT', { at: 'nobody' }]],
  'Chats.list': one([null, 7, { limit: 0 }, { before: 'x' }, { state: 'x' }, { colour: 'red' }]),
  'Chats.search': [...one([null, 7, '', {}]), ['x', { limit: 0 }], ['x', { owner: 7 }]],
  'Chats.from': one([null, undefined, 7, {}]),
  'Approvals.list': one([null, 7, { limit: 0 }, { before: 'x' }, { owner: '' }, { state: 'x' }]),
  'CompleteJob.enqueue': [...one(ids), ['CHAT', { transaction: {} }]],
  'RunToolsJob.enqueue': one(ids),
  'CompactJob.enqueue': one(ids),
}

onEachDatabase('Every public method', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 45_000 })
  const signatures = [...readSignatures(join(import.meta.dirname, '../..')).entries()]
  const methods = signatures
    .filter(
      ([name, signature]) =>
        /^(Chat|Chats|Approvals|CompleteJob|RunToolsJob|CompactJob)\./.test(name) && signature.includes('('),
    )
    .map(([name]) => name)
    .filter((name) => !/\.(constructor|process|handle|work|run)$/.test(name))

  it('stands in the table of what it refuses', () => {
    expect(methods.filter((name) => !/Job\./.test(name)).toSorted()).to.deep.equal(
      Object.keys(table)
        .filter((name) => !/Job\./.test(name))
        .toSorted(),
    )
  })

  /** A chat that waits for a decision, another chat whose call it is not, and what a name of the table means. */
  async function setUp() {
    await bench.script([toolCalls([call('guarded', freshId())]), toolCalls([call('guarded', freshId())]), text('x')])
    const agent = defineAgent({ name: freshName(), tools: [recording('guarded', [], { requiresApproval: true })] })
    const mill = await bench.connect({ agents: [agent] })
    const [chat, other] = [await mill.chats.create({ agent }), await mill.chats.create({ agent })]
    await chat.ask('Go')
    await other.ask('Go')
    const idle = await mill.chats.create({ agent })
    const [own] = await chat.pendingApprovals()
    const [foreign] = await other.pendingApprovals()
    const meant: Record<string, unknown> = {
      CALL: own?.id,
      'CALL:ask-1': `${own?.id}:ask-1`,
      'OTHER CALL': foreign?.id,
      CHAT: idle.id,
    }
    const objectOf = (name: string): unknown => {
      if (name.startsWith('Chats.')) return mill.chats
      if (name.startsWith('Approvals.')) return mill.approvals
      if (name.startsWith('CompleteJob.')) return mill.jobs.complete
      if (name.startsWith('RunToolsJob.')) return mill.jobs.runTools
      if (name.startsWith('CompactJob.')) return mill.jobs.compact
      return ['Chat.approve', 'Chat.deny', 'Chat.answer', 'Chat.decline'].includes(name) ? chat : idle
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
        const shown = `${name}(${args.map((arg) => (arg === huge ? 'HUGE' : JSON.stringify(arg))).join(', ')})`
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
    expect(bench.model.requests).to.have.length(2)
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
