import { expect } from 'chai'
import { Registry } from 'prom-client'
import { ConfigurationError } from '../../src/index.ts'
import { definitions, metricPrefix } from '../../src/observability/metrics/definitions.ts'
import { type Metrics, openMetrics } from '../../src/observability/metrics/metrics.ts'
import { modelEnded, runEnded, someError, toolEnded } from './observations.ts'

/** The samples of a text of metrics: `name{labels}` to value. */
async function samples(metrics: Metrics): Promise<Map<string, number>> {
  const lines = (await metrics.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]))
}

describe('Metrics', () => {
  it('count an attempt by provider, model and how it ended, with its tokens and its cost', async () => {
    const metrics = openMetrics(null)
    metrics.observe(modelEnded)
    metrics.observe({ ...modelEnded, status: 'failed', error: someError, costUsd: null })
    const asked = 'provider="openai",model="gpt"'
    const seen = await samples(metrics)
    expect(seen.get(`threadmill_model_calls_total{${asked},operation="chat",status="succeeded",code="none"}`)).to.equal(
      1,
    )
    expect(
      seen.get(`threadmill_model_calls_total{${asked},operation="chat",status="failed",code="provider.rate_limit"}`),
    ).to.equal(1)
    expect(seen.get(`threadmill_model_tokens_total{${asked},kind="input"}`)).to.equal(200)
    expect(seen.get(`threadmill_model_tokens_total{${asked},kind="cache_read"}`)).to.equal(60)
    expect(seen.has(`threadmill_model_tokens_total{${asked},kind="thinking"}`)).to.equal(false)
    expect(seen.get(`threadmill_model_cost_usd_total{${asked}}`)).to.equal(0.0015)
    expect(seen.get(`threadmill_model_first_token_seconds_sum{${asked}}`)).to.equal(0.6)
    expect(seen.get(`threadmill_model_call_duration_seconds_count{${asked}}`)).to.equal(1)
  })

  it('time tools that were executed, and count those that were not too', async () => {
    const metrics = openMetrics(null)
    metrics.observe(toolEnded)
    metrics.observe({ ...toolEnded, outcome: 'denied', executed: false, durationMs: 0 })
    const seen = await samples(metrics)
    expect(seen.get('threadmill_tool_calls_total{tool="refund",outcome="denied"}')).to.equal(1)
    expect(seen.get('threadmill_tool_call_duration_seconds_count{tool="refund"}')).to.equal(1)
  })

  it('tell runs that lost their chat from others', async () => {
    const metrics = openMetrics(null)
    metrics.observe(runEnded)
    metrics.observe({ ...runEnded, outcome: 'claim-lost' })
    const seen = await samples(metrics)
    expect(seen.get('threadmill_runs_total{outcome="answered"}')).to.equal(1)
    expect(seen.get('threadmill_claims_lost_total')).to.equal(1)
  })

  it('grow by 101 names of tools at most, whatever they are called', async () => {
    const metrics = openMetrics(null)
    for (let at = 0; at < 150; at++) metrics.observe({ ...toolEnded, tool: `tool-${at}` })
    const calls = [...(await samples(metrics))].filter(([name]) => name.startsWith('threadmill_tool_calls_total'))
    expect(calls).to.have.length(101)
    expect(calls.find(([name]) => name.includes('tool="other"'))?.[1]).to.equal(50)
  })

  it('ask the database and Redis once for all gauges, and leave out what did not answer', async () => {
    const asked = { backlog: 0, queues: 0 }
    const metrics = openMetrics(null)
    metrics.read({
      claimsHeld: () => 3,
      async backlog() {
        asked.backlog++
        return { due: 4, oldestDueMs: 2_500, parked: 5, failed: 6 }
      },
      async queues() {
        asked.queues++
        throw new Error('Redis is away')
      },
    })
    await samples(metrics)
    const seen = await samples(metrics)
    expect(asked).to.deep.equal({ backlog: 1, queues: 1 })
    expect(seen.get('threadmill_claims_held')).to.equal(3)
    expect(seen.get('threadmill_chats_due')).to.equal(4)
    expect(seen.get('threadmill_chats_due_oldest_age_seconds')).to.equal(2.5)
    expect(seen.get('threadmill_chats_parked')).to.equal(5)
    expect(seen.get('threadmill_chats_failed')).to.equal(6)
    expect([...seen.keys()].some((name) => name.startsWith('threadmill_queue_jobs'))).to.equal(false)
  })

  it('leave out what the database would say when it does not answer', async () => {
    const metrics = openMetrics(null)
    metrics.read({ claimsHeld: () => 0, backlog: () => Promise.reject(new Error('away')), queues: async () => ({}) })
    const seen = await samples(metrics)
    expect([...seen.keys()].filter((name) => name.startsWith('threadmill_chats_'))).to.deep.equal([
      'threadmill_chats_put_off_total',
      'threadmill_chats_quarantined_total',
    ])
  })

  it('go into the registry of the application, once, and leave it when the connection closes', () => {
    const registry = new Registry()
    const first = openMetrics(registry)
    expect(() => openMetrics(registry)).to.throw(ConfigurationError, 'a registry of its own')
    first.close()
    expect(registry.getMetricsAsArray()).to.deep.equal([])
    openMetrics(registry).close()
  })

  it('have names that say their unit, and labels that are no ids', () => {
    for (const [name, { kind, labels }] of Object.entries(definitions)) {
      expect(`${metricPrefix}${name}`).to.match(/^threadmill_[a-z_]+$/)
      if (kind === 'counter') expect(name).to.match(/_total$/)
      if (kind === 'histogram') expect(name).to.match(/_seconds$/)
      for (const label of labels) expect(label).not.to.match(/id$|chat|owner/i)
    }
  })
})
