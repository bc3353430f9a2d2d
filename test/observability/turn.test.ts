import { propagation, trace } from '@opentelemetry/api'
import { expect } from 'chai'
import * as z from 'zod'
import { type ConnectOptions, defineAgent, defineTool, type Observation, Threadmill } from '../../src/index.ts'
import { httpError, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { errorFrom } from '../tools/rows.ts'
import { useSpans } from './spans.ts'

/** Stands in everything that must not get out. */
const canary = (where: string) => `canary-${where}`

onEachDatabase('What is observed of a turn', (kind) => {
  const spans = useSpans()
  const bench = useBench(kind, { claimTtlMs: 45_000, sweepEveryMs: 60_000 })
  let lines: { level: string; event: string; [name: string]: unknown }[] = []
  let seen: Observation[] = []

  beforeEach(function () {
    this.currentTest?.timeout(60_000)
    lines = []
    seen = []
  })

  const logger = Object.fromEntries(
    ['debug', 'info', 'warn', 'error'].map((level) => [
      level,
      (facts: { event: string }) => lines.push({ ...facts, level }),
    ]),
  ) as unknown as NonNullable<ConnectOptions['logger']>

  const refund = defineTool({
    name: 'refund',
    description: 'Refunds an order.',
    parameters: z.object({ order: z.string() }),
    execute: ({ order }) => {
      spans.provider.getTracer('application').startSpan('bank').end()
      if (order === canary('broken')) throw new Error(canary('tool error'))
      return `${canary('result')} for ${order}`
    },
  })
  const agent = defineAgent({
    name: 'support',
    retries: 0,
    tools: [refund],
    prices: { input: 1_000, output: 1_000 },
  })

  const connect = (options: ConnectOptions = {}) =>
    bench.connect({
      agents: [agent],
      openaiApiKey: canary('key'),
      logger,
      onObservation: (observation) => seen.push(observation),
      metrics: true,
      tracing: spans.provider,
      ...options,
    })

  const calling = (order: string) => toolCalls([{ name: 'refund', arguments: { order } }])
  const events = () => lines.map(({ event }) => event)

  it('is one line for each thing that happened, with ids and times', async () => {
    await bench.script([calling('42'), text('Done.')])
    const chat = await (await connect()).chats.create({ agent })
    await chat.ask('Refund 42')
    expect(events()).to.deep.equal([
      'run.taken',
      'model.ended',
      'move.made',
      'tool.ended',
      'move.made',
      'model.ended',
      'move.made',
      'turn.ended',
      'run.ended',
    ])
    for (const line of lines) expect(line).to.include({ chatId: chat.id, turn: 1, claimToken: 1 })
    expect(lines.at(-1)).to.include({ level: 'info', outcome: 'answered', agent: 'support', moves: 3 })
    expect(lines[1]).to.include({ provider: 'openai', model: 'test-model', status: 'succeeded', attempt: 1 })
    // The first answer has no text, only a call.
    expect(lines[1]).not.to.have.property('firstTokenMs')
    for (const name of ['inputTokens', 'outputTokens', 'costUsd', 'durationMs', 'firstTokenMs']) {
      expect(lines[5]).to.have.property(name)
    }
    expect(lines[3]).to.include({ tool: 'refund', outcome: 'succeeded', executed: true })
  })

  it('says nothing of what was said, of keys or passwords, however the turn goes', async () => {
    await bench.script([
      calling(canary('argument')),
      text(canary('answer')),
      httpError(400, canary('provider error')),
      calling(canary('broken')),
      toolCalls([{ name: canary('no-such-tool'), arguments: { order: canary('argument') } }]),
      text('Done.'),
    ])
    const mill = await connect()
    const pool = mill.startWorkers({ complete: 1, runTools: 0 })
    await pool.ready()
    const chat = await mill.chats.create({ agent })
    const turn = async (what: string, ends: number) => {
      await chat.askLater(canary(what), { enqueue: true })
      await until(`turn ${ends} is over`, () => events().filter((event) => event === 'job.ended').length >= ends)
    }
    await turn('question', 1)
    await turn('question that fails', 2)
    await turn('question that breaks a tool', 3)
    await mill.jobs.complete.enqueue(chat)
    await until('the last turn is over', async () => chat.isComplete())
    await pool.close()
    const unreachable = `mysql://user:${canary('password')}@127.0.0.1:1/none`
    await errorFrom(() => Threadmill.connect({ ...bench.options(), databaseUrl: unreachable, logger }))
    const codes = lines.flatMap(({ error }) => (error as { code?: string } | undefined)?.code ?? [])
    expect(codes).to.include.members(['provider.bad_request', 'error'])
    expect(seen.some((one) => one.type === 'tool.ended' && one.tool === 'unknown')).to.equal(true)
    const said = [JSON.stringify(lines), JSON.stringify(seen), await mill.metrics(), spans.text()].join('\n')
    expect(said.match(/canary-[\w -]*/g) ?? []).to.deep.equal([])
  })

  it('holds what was said once it is asked for, cut, and keys never', async () => {
    await bench.script([calling(canary('argument')), text(`${canary('answer')}${'x'.repeat(5_000)}`)])
    const chat = await (await connect({ observeContent: true })).chats.create({ agent })
    await chat.ask(canary('question'))
    const log = JSON.stringify(lines)
    for (const part of ['argument', 'result', 'answer']) expect(log).to.contain(canary(part))
    expect(log).not.to.contain('x'.repeat(2_001))
    const traced = spans.text()
    for (const part of ['question', 'argument', 'result', 'answer']) expect(traced).to.contain(canary(part))
    expect(log + traced).not.to.contain(canary('key'))
    const request = spans.named('chat test-model')[0]?.attributes['gen_ai.input.messages']
    expect(JSON.parse(String(request))).to.deep.equal([
      { role: 'user', parts: [{ type: 'text', content: canary('question') }] },
    ])
  })

  it('tells a summary from an answer', async () => {
    await bench.script([text(`${canary('answer')} ${'x'.repeat(500)}`), text(canary('summary'))])
    const mill = await connect()
    const chat = await mill.chats.create({ agent })
    await chat.ask(canary('question'))
    lines = []
    await chat.compact()
    expect(events()).to.deep.equal(['run.taken', 'model.ended', 'compaction.ended', 'run.ended'])
    expect(lines.map(({ operation, outcome }) => operation ?? outcome)).to.deep.equal([
      undefined,
      'compaction',
      'stored',
      'compacted',
    ])
    expect(await mill.metrics()).to.contain('threadmill_compactions_total{outcome="stored"} 1')
    expect(JSON.stringify(lines)).not.to.contain('canary')
  })

  it('is counted, with what waits in the database and in the queues', async () => {
    await bench.script([calling('42'), text('Done.')])
    const mill = await connect()
    await mill.models.Chat.destroy({ where: {} })
    const chat = await mill.chats.create({ agent })
    await chat.ask('Refund 42')
    await mill.jobs.complete.enqueue((await mill.chats.create({ agent })).id)
    const metrics = await mill.metrics()
    for (const sample of [
      'threadmill_turns_total{outcome="answered"} 1',
      'threadmill_runs_total{outcome="answered"} 1',
      'threadmill_model_calls_total{provider="openai",model="test-model",operation="chat",status="succeeded",code="none"} 2',
      'threadmill_tool_calls_total{tool="refund",outcome="succeeded"} 1',
      'threadmill_claims_held 0',
      'threadmill_chats_due 1',
      'threadmill_queue_jobs{queue="complete",state="wait"} 1',
    ]) {
      expect(metrics.split('\n')).to.include(sample)
    }
    expect(metrics)
      .to.match(/threadmill_model_cost_usd_total\{[^}]*\} 0\.\d+/)
      .and.not.to.contain(chat.id)
  })

  it('is a tree of spans by the names of OpenTelemetry, and those of a tool stand below its call', async () => {
    await bench.script([calling('42'), text('Done.')])
    const chat = await (await connect()).chats.create({ agent })
    await chat.ask('Refund 42')
    expect(spans.path(spans.one('bank'))).to.deep.equal(['bank', 'execute_tool refund', 'invoke_agent support'])
    expect(spans.one('invoke_agent support').attributes).to.include({
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': 'support',
      'gen_ai.conversation.id': chat.id,
      'threadmill.run.outcome': 'answered',
    })
    const [asked] = spans.named('chat test-model')
    expect(asked && spans.path(asked)).to.deep.equal(['chat test-model', 'invoke_agent support'])
    const ended = seen.find((one) => one.type === 'model.ended')
    expect(asked?.attributes).to.include({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'test-model',
      'gen_ai.conversation.id': chat.id,
      'gen_ai.usage.output_tokens': ended?.outputTokens,
    })
    expect(asked?.attributes['gen_ai.response.finish_reasons']).to.deep.equal(['tool_calls'])
    expect(spans.one('execute_tool refund').attributes).to.include({
      'gen_ai.tool.name': 'refund',
      'gen_ai.tool.call.id': seen.find((one) => one.type === 'tool.ended')?.toolCallId,
      'threadmill.tool.outcome': 'succeeded',
    })
  })

  it('marks the spans of what failed with the code of the error', async () => {
    await bench.script([httpError(401, 'no')])
    const chat = await (await connect()).chats.create({ agent })
    await errorFrom(() => chat.ask('Refund 42'))
    for (const name of ['chat test-model', 'invoke_agent support']) {
      const { attributes, status } = spans.one(name)
      expect(attributes['error.type']).to.equal('provider.authentication')
      expect(status).to.deep.equal({ code: 2 })
    }
  })

  it('belongs to the trace of whoever rang for it, by the options of the job; its data stays the id of the chat', async () => {
    propagation.setGlobalPropagator(plainPropagator)
    await bench.script(text('Done.'))
    const mill = await connect()
    // Those of earlier tests may be due.
    await mill.models.Chat.destroy({ where: {} })
    const chat = await mill.chats.create({ agent })
    const tracer = spans.provider.getTracer('application')
    await tracer.startActiveSpan('request', async (span) => {
      await chat.askLater('Hello?', { enqueue: true })
      span.end()
    })
    const pool = mill.startWorkers({ complete: 1, runTools: 0 })
    await until('it is answered', () => chat.isComplete())
    await pool.close()
    propagation.disable()
    expect(spans.path(spans.one('invoke_agent support'))).to.deep.equal([
      'invoke_agent support',
      'process complete',
      'add complete.ring',
      'request',
    ])
  })
})

/** As much of W3C's trace context as a test needs; an SDK registers the whole of it. */
const plainPropagator: Parameters<typeof propagation.setGlobalPropagator>[0] = {
  inject(active, carrier, setter) {
    const span = trace.getSpanContext(active)
    if (span !== undefined) setter.set(carrier, 'traceparent', `00-${span.traceId}-${span.spanId}-01`)
  },
  extract(active, carrier, getter) {
    const [, traceId = '', spanId = ''] = String(getter.get(carrier, 'traceparent') ?? '').split('-')
    return spanId === '' ? active : trace.setSpanContext(active, { traceId, spanId, traceFlags: 1, isRemote: true })
  },
  fields: () => ['traceparent'],
}
