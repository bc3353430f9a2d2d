import { expect } from 'chai'
import * as z from 'zod'
import { agentTool, defineAgent, defineTool } from '../../src/index.ts'
import { text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'

const add = defineTool({
  name: 'add',
  description: 'Adds two numbers.',
  parameters: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => a + b,
})
const calculator = defineAgent({ name: 'calculator', tools: [add] })
const turn = () => [toolCalls([{ name: 'add', arguments: { a: 1, b: 2 } }]), text('It is 3.')]

onEachDatabase('A tool turn in one run', (kind) => {
  const bench = useBench(kind)

  for (const [stored, observability] of [
    [0, {}],
    [1_000, { metrics: true, tracing: true, onObservation() {} }],
  ] as const) {
    const how = 'metrics' in observability ? 'observed' : 'not observed'
    it(`takes 30 SQL statements and at most 30 Redis commands with ${stored} messages stored, ${how}`, async function () {
      this.timeout(150_000)
      await bench.script(turn())
      const statements: string[] = []
      const commands: string[] = []
      const mill = await bench.connect({
        agents: [calculator],
        claimTtlMs: 45_000,
        sweepEveryMs: 60_000,
        ...observability,
        observe: { onStatement: (sql) => statements.push(sql), onCommand: (name) => commands.push(name) },
      })
      // Rung by an application of its own, whose statements are not counted, once the worker stands still.
      const application = await bench.connect({ agents: [calculator] })
      const chat = await application.chats.create({ agent: calculator })
      for (let at = 0; at < stored; at += 2) {
        await chat.addMessage({ role: 'user', content: `question ${at}` })
        await chat.addMessage({ role: 'assistant', content: `answer ${at}` })
      }
      await chat.askLater('1 + 2?')
      const pool = mill.startWorkers({ complete: 1, runTools: 0, compact: 0 })
      await pool.ready()
      await until('chats that were put off are taken up', () =>
        statements.some((sql) => /failure = NULL, put_off = 0, /.test(sql)),
      )
      statements.length = 0
      commands.length = 0
      await application.jobs.complete.enqueue(chat)
      await until('the answer is logged as given', () => bench.model.requests[1]?.ended === 'answered')
      await until('the job has ended', () => /^SELECT/.test(statements.at(-1) ?? '') && statements.length >= 30, 60_000)
      await pool.close()
      const events = commands.filter((name) => name === 'xadd' || name === 'pexpire')
      // One look a second for a cancel, however many chats run: on a slow machine the turn lasts long enough for some.
      const ofTheTurn = statements.filter((sql) => !/^SELECT id FROM \S+ WHERE id IN .* cancel_turn = turn$/.test(sql))
      expect(ofTheTurn, ofTheTurn.join('\n')).to.have.length(30)
      expect(commands.length - events.length).to.be.at.most(30)
      // Ten events, the text in as many pieces as it has chunks at most, and how long the stream is to live, twice.
      expect(events.length).to.be.within(12, 16)
      expect(await chat.messages()).to.have.length(stored + 4)
    })
  }
})

onEachDatabase('A turn in which another agent is asked', (kind) => {
  const bench = useBench(kind)

  it('takes 60 SQL statements, three runs of two chats together (E90)', async () => {
    const helper = defineAgent({ name: 'helper', instructions: 'helper' })
    const asking = defineAgent({ name: 'asking', tools: [agentTool(helper, { description: 'Helps.' })] })
    await bench.script(({ messages }) => {
      if (messages[0]?.content === 'helper') return text('3')
      const isAnswered = messages.at(-1)?.role === 'tool'
      return isAnswered ? text('It is 3.') : toolCalls([{ name: 'helper', arguments: { message: '1 + 2' } }])
    })
    const statements: string[] = []
    const mill = await bench.connect({
      agents: [asking],
      claimTtlMs: 45_000,
      sweepEveryMs: 60_000,
      observe: { onStatement: (sql) => statements.push(sql) },
    })
    const application = await bench.connect({ agents: [asking] })
    const chat = await application.chats.create({ agent: asking })
    await chat.askLater('1 + 2?')
    const pool = mill.startWorkers({ complete: 2, runTools: 0, compact: 0 })
    await pool.ready()
    await until('chats that were put off are taken up', () =>
      statements.some((sql) => /failure = NULL, put_off = 0, /.test(sql)),
    )
    statements.length = 0
    await application.jobs.complete.enqueue(chat)
    await until('it is answered', async () => (await chat.isComplete()) && !(await chat.running()))
    await pool.close()
    const ofTheTurn = statements.filter((sql) => !/^SELECT id FROM \S+ WHERE id IN .* cancel_turn = turn$/.test(sql))
    // A ring that comes twice finds nothing to do, by two statements.
    expect(ofTheTurn.length, ofTheTurn.join('\n')).to.be.within(59, 62)
  })
})
