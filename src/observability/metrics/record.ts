import type { ModelEnded, Observation, RunEnded, ToolEnded } from '../observation.ts'
import { capped } from './capped.ts'
import type { MetricName } from './definitions.ts'

type Labels = Readonly<Record<string, string>>

/** Where numbers go. */
export interface Recorder {
  /** Adds to a counter. */
  add(name: MetricName, value: number, labels?: Labels): void
  /** Adds a value to a histogram, in the unit of its name. */
  see(name: MetricName, value: number, labels?: Labels): void
}

/** Turns what is observed into numbers. No label holds an id; those that others name are capped. */
export function recordTo(recorder: Recorder): (observation: Observation) => void {
  const caps = { provider: capped(), model: capped(), tool: capped(), code: capped() }

  function run({ outcome, durationMs }: RunEnded): void {
    recorder.add('runs_total', 1, { outcome })
    recorder.see('run_duration_seconds', durationMs / 1_000, { outcome })
    if (outcome === 'claim-lost') recorder.add('claims_lost_total', 1)
    if (outcome === 'put-off') recorder.add('chats_put_off_total', 1)
  }

  function model(ended: ModelEnded): void {
    const asked = { provider: caps.provider(ended.provider), model: caps.model(ended.model) }
    const code = ended.error === null ? 'none' : caps.code(ended.error.code)
    recorder.add('model_calls_total', 1, { ...asked, operation: ended.operation, status: ended.status, code })
    if (ended.status === 'succeeded') recorder.see('model_call_duration_seconds', ended.durationMs / 1_000, asked)
    if (ended.firstTokenMs !== null) recorder.see('model_first_token_seconds', ended.firstTokenMs / 1_000, asked)
    const tokens = {
      input: ended.inputTokens,
      output: ended.outputTokens,
      cache_read: ended.cacheReadTokens,
      cache_write: ended.cacheWriteTokens,
      thinking: ended.thinkingTokens,
    }
    for (const [kind, count] of Object.entries(tokens)) {
      if (count !== null && count > 0) recorder.add('model_tokens_total', count, { ...asked, kind })
    }
    const cost = Number(ended.costUsd ?? 0)
    if (cost > 0) recorder.add('model_cost_usd_total', cost, asked)
  }

  function tool({ tool: name, outcome, executed, durationMs }: ToolEnded): void {
    const label = caps.tool(name)
    recorder.add('tool_calls_total', 1, { tool: label, outcome })
    if (executed) recorder.see('tool_call_duration_seconds', durationMs / 1_000, { tool: label })
  }

  return (seen) => {
    switch (seen.type) {
      case 'run.taken':
        if (seen.waitedMs !== null) recorder.see('run_wait_seconds', Math.max(0, seen.waitedMs) / 1_000)
        return
      case 'run.ended':
        return run(seen)
      case 'turn.ended':
        return recorder.add('turns_total', 1, { outcome: seen.outcome })
      case 'model.ended':
        return model(seen)
      case 'tool.ended':
        return tool(seen)
      case 'usage.unwritten':
        return recorder.add('usages_unwritten_total', 1, { step: seen.step })
      case 'compaction.ended':
        return recorder.add('compactions_total', 1, { outcome: seen.outcome })
      case 'claim.renewed-late':
        return recorder.add('claim_renewals_late_total', 1)
      case 'chat.put-off':
        return recorder.add('chats_put_off_total', 1)
      case 'chat.failed':
        return recorder.add('turns_total', 1, { outcome: 'failed' })
      case 'alone.ended':
        return recorder.add('alone_runs_total', 1, { outcome: seen.outcome })
      case 'chat.quarantined':
        return recorder.add('chats_quarantined_total', 1)
      case 'ring.lost':
        return recorder.add('rings_lost_total', 1, { queue: seen.queue })
      case 'sweep.ended':
        return recorder.add('sweeper_rings_total', seen.rung)
      case 'job.started':
        return recorder.see('job_wait_seconds', Math.max(0, seen.waitedMs) / 1_000, { queue: seen.queue })
      case 'job.ended':
        return recorder.add('jobs_total', 1, { queue: seen.queue, outcome: seen.outcome })
      case 'events.dropped':
        return recorder.add('event_drops_total', 1)
      case 'hook.trouble':
        return recorder.add('troubles_total', 1, { part: 'hook' })
      case 'database.trouble':
        return recorder.add('troubles_total', 1, { part: 'database' })
      case 'redis.trouble':
      case 'lock.missing':
        return recorder.add('troubles_total', 1, { part: 'redis' })
      case 'renewal.restarted':
        return recorder.add('troubles_total', 1, { part: 'renewal' })
      case 'worker.renewed':
        return recorder.add('worker_renewals_total', 1, { queue: seen.queue })
      case 'worker.stuck':
        return recorder.add('workers_stuck_total', 1, { queue: seen.queue })
      case 'run.refused':
      case 'move.made':
      case 'model.retry':
      case 'approval.requested':
      case 'approval.decided':
      case 'queued.taken':
      case 'claim.lost':
      case 'alone.started':
      case 'pool.started':
      case 'pool.closed':
      case 'worker.recovered':
      case 'notice':
        return
      default:
        return seen satisfies never
    }
  }
}
