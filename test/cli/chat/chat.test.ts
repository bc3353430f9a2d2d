import { expect } from 'chai'
import * as z from 'zod'
import type { Diagnosis } from '../../../src/chat/diagnose.ts'
import { type ChatEvent, defineAgent, defineTool, type Threadmill } from '../../../src/index.ts'
import { gate, httpError, text, toolCalls } from '../../../src/testing/index.ts'
import { sqlite } from '../../support/databases.ts'
import { useBench } from '../../support/mills.ts'
import { until } from '../../support/until.ts'
import { jsonLines } from '../run-cli.ts'
import { chatIn, useTypists } from './typists.ts'

const refund = defineTool({
  name: 'refund',
  description: 'Refunds an order.',
  parameters: z.object({ order: z.string() }),
  requiresApproval: true,
  execute: ({ order }, { progress }) => {
    progress({ message: 'asking the bank' })
    return `refunded ${order}`
  },
})
const support = defineAgent({ name: 'support', tools: [refund], attempts: 1, retries: 0 })

describe('threadmill chat', function () {
  this.timeout(120_000)
  const bench = useBench(sqlite, { claimTtlMs: 30_000 })
  const start = useTypists(bench)
  let mill: Threadmill

  async function startPool(): Promise<void> {
    mill = await bench.connect({ agents: [support] })
    await mill.startWorkers({ complete: 2, runTools: 0, compact: 1 }).ready()
  }

  it('asks what a pipe says, one turn after the other, by workers that alone know the agent, and ends at rest', async () => {
    await bench.script([text('Hello you.'), text('Bye then.')])
    await startPool()
    const typist = start(['--agent', 'support', '--owner', 'me', '--model', 'other-model'])
    typist.type('hello')
    typist.type('bye')
    typist.end()
    const { code, out, err } = await typist.ended
    expect({ code, err }).to.deep.equal({ code: 0, err: '' })
    expect(out).to.match(/› hello\n[\s\S]*Hello you\.\n[\s\S]*› bye\n[\s\S]*Bye then\.\n/)
    const chat = await chatIn(mill, typist)
    expect({ owner: chat.owner, agent: chat.agent }).to.deep.equal({ owner: 'me', agent: 'support' })
    expect(bench.model.requests.map(({ body }) => body.model)).to.deep.equal(['other-model', 'other-model'])
  })

  it('asks about each call with its arguments, shows its progress and result, and remembers an a', async () => {
    await bench.script([
      toolCalls([
        { id: 'one', name: 'refund', arguments: { order: '41' } },
        { id: 'two', name: 'refund', arguments: { order: '42' } },
      ]),
      toolCalls([{ id: 'three', name: 'refund', arguments: { order: '43' } }]),
      text('All done.'),
    ])
    await startPool()
    const typist = start(['--agent', 'support'])
    for (const line of ['refund them', 'perhaps', 'n', 'a']) typist.type(line)
    typist.end()
    const { code, out } = await typist.ended
    expect(code, out).to.equal(0)
    expect(out).to.match(/│ {3}order: 41[\s\S]*please answer y, n or a[\s\S]*denied refund/)
    expect(out).to.match(
      /│ {3}order: 42[\s\S]*remembered refund[\s\S]*progress asking the bank[\s\S]*succeeded refund: refunded 42/,
    )
    expect(out).to.match(/refunded 43[\s\S]*All done\./)
    expect(out).not.to.include('somebody else')
  })

  it('says that somebody else decided meanwhile, and goes on', async () => {
    await bench.script([toolCalls([{ id: 'one', name: 'refund', arguments: { order: '41' } }]), text('Done.')])
    await startPool()
    const typist = start(['--agent', 'support'])
    typist.type('refund it')
    await typist.says('waits for your approval')
    const chat = await chatIn(mill, typist)
    await until('it is parked', async () => (await chat.diagnosis()).state === 'parked')
    const [call] = await chat.pendingApprovals()
    await chat.approve(call ?? '')
    await typist.says('somebody else has decided about refund')
    typist.end()
    const { code, out } = await typist.ended
    expect(code).to.equal(0)
    expect(out).to.include('Done.')
  })

  it('exits with 3 where a pipe ends and a person has to decide, and the next one decides', async () => {
    await bench.script([toolCalls([{ id: 'one', name: 'refund', arguments: { order: '41' } }]), text('Done.')])
    await startPool()
    const first = start(['--agent', 'support'])
    first.type('refund it')
    first.end()
    const parked = await first.ended
    expect(parked.code, parked.out).to.equal(3)
    const second = start([(await chatIn(mill, first)).id])
    second.type('y')
    second.end()
    const { code, out } = await second.ended
    expect(code).to.equal(0)
    expect(out).to.match(/› refund it[\s\S]*order: 41[\s\S]*approved refund[\s\S]*Done\./)
  })

  it('queues what a person types during an answer, lists the queue, and takes out of it', async () => {
    const held = gate(text('One two.'))
    await bench.script([held, text('Three, four.')])
    await startPool()
    const typist = start(['--agent', 'support'], { tty: true })
    await typist.says('/help lists the commands')
    typist.type('count')
    await held.reached
    typist.type('and three')
    typist.type('/later four')
    typist.type('/later five')
    await typist.says('queued for the next turn: five')
    typist.type('/unqueue 3')
    await typist.says('taken out of the queue')
    typist.type('/queue')
    await typist.says(/1\. for this turn: and three\r?\n[\s\S]*2\. for the next turn: four/)
    held.release()
    await typist.says('Three, four.')
    const chat = await chatIn(mill, typist)
    const said = (await chat.messages()).filter(({ role }) => role === 'user').map(({ content }) => content)
    expect(said).to.deep.equal(['count', 'and three', 'four'])
    await typist.says('› four')
    typist.end()
    expect((await typist.ended).code).to.equal(0)
  })

  it('joins in the middle of an answer, and leaves it going with Ctrl-D', async () => {
    const held = gate(text('Once upon a time.'))
    await bench.script([held])
    await startPool()
    const chat = await mill.chats.create({ agent: support })
    await chat.askLater('a story', { enqueue: true })
    await held.reached
    await held.step()
    await held.step()
    await held.step()
    const typist = start([chat.id], { tty: true })
    await typist.says(/› a story[\s\S]*Once upon/)
    typist.end()
    const { code, err } = await typist.ended
    expect(code).to.equal(0)
    expect(err).to.include(`The turn goes on without you: threadmill chat ${chat.id}`)
    held.release()
    await until('it is answered', () => chat.isComplete())
  })

  it('stops the turn at Ctrl-C, tries it again at /retry, and leaves at Ctrl-C at rest', async () => {
    const held = gate(text('One two.'))
    await bench.script([held, text('Again.')])
    await startPool()
    const typist = start(['--agent', 'support'], { tty: true })
    await typist.says('/help lists the commands')
    typist.type('count')
    await held.reached
    typist.process.emit('SIGINT')
    await typist.says('stopped')
    typist.type('/retry')
    await typist.says('Again.')
    await typist.says('run finished')
    typist.type('/status')
    await typist.says(/state +idle/)
    const insist = setInterval(() => typist.process.emit('SIGINT'), 50)
    expect((await typist.ended).code).to.equal(130)
    clearInterval(insist)
  })

  it('exits with 1 where the turn failed, and says why and what to do', async () => {
    await bench.script(httpError(401, 'no such key'))
    await startPool()
    const typist = start(['--agent', 'support'])
    typist.type('hello')
    typist.end()
    const { code, out } = await typist.ended
    expect(code).to.equal(1)
    expect(out).to.match(/run failed\n.*no such key.*\(\/retry\)/)
  })

  it('says why nothing happens where no worker has the agent', async () => {
    await bench.script([])
    await startPool()
    const typist = start(['--agent', 'nobody'])
    typist.type('hello')
    await typist.says(/"nobody"|agent nobody/)
    await typist.says(/start a worker|Start/i)
  })

  it('writes the events as JSON lines, and what commands say as values of their own types', async () => {
    await bench.script([text('Hello you.')])
    await startPool()
    const typist = start(['--agent', 'support', '--json'])
    typist.type('hello')
    await typist.says('"run.finished"')
    for (const line of ['/status', '/queue', '/dance', '/compact']) typist.type(line)
    typist.end()
    const { code, out } = await typist.ended
    expect(code).to.equal(0)
    const values = jsonLines(out) as (ChatEvent | { type: string; diagnosis?: Diagnosis })[]
    expect(values[0]?.type).to.equal('chat')
    const deltas = values.flatMap((value) => ('text' in value && value.type === 'text.delta' ? [value.text] : []))
    expect(deltas.join('')).to.equal('Hello you.')
    const types = values.map(({ type }) => type)
    expect(types).to.include.members(['run.started', 'message.finished', 'usage', 'run.finished'])
    expect(types.filter((type) => ['status', 'queue', 'note'].includes(type))).to.deep.equal([
      'status',
      'queue',
      'note',
      'note',
    ])
  })

  it('exits with 1 for a chat that is not there, and with 2 for a joined one that is given an agent', async () => {
    const absent = '0199d2a4-5c1e-7000-8000-000000000000'
    const missing = await start([absent]).ended
    expect(missing.code).to.equal(1)
    expect(missing.err).to.include('chat.not_found')
    expect((await start([absent, '--agent', 'support']).ended).code).to.equal(2)
  })
})
