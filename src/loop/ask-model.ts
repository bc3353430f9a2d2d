import type { UsageOperation } from '../../models/rows.ts'
import type { UsageClosing } from '../../models/usages.ts'
import { ProviderError } from '../errors.ts'
import type { Observe } from '../observability/observation.ts'
import type { Answer, AnswerProgress, ModelRequest, TokenUsage } from '../providers/provider.ts'
import { type AttemptEnd, modelEnded } from './model-ended.ts'
import type { ModelTarget } from './model-target.ts'
import { factsOf, type RunContext } from './run-context.ts'
import { usageClosing } from './usage-closing.ts'
import { closeUsage } from './usage-entries.ts'
import { wellFormedAnswer } from './well-formed-answer.ts'

/** One physical attempt at a model. */
export interface ModelAttempt {
  readonly target: ModelTarget
  readonly usageId: string
  /** The message that the answer is to become. */
  readonly messageId: string
  readonly operation: UsageOperation
  /** Counts the attempts at one answer from 1. */
  readonly number: number
  /** What the provider has reported so far. */
  usage: TokenUsage | null
}

export type Asked =
  | { readonly kind: 'answered'; readonly answer: Answer }
  /** Something that another attempt may mend. */
  | { readonly kind: 'failed'; readonly error: ProviderError }
  | { readonly kind: 'stopped' }

type OnProgress = (progress: AnswerProgress) => void | Promise<void>

/**
 * Makes one attempt. Its usage entry is closed whatever happens. Throws what no retry can mend: the claim, a hook, a bug, a
 * database that is away.
 */
export function askModel(
  run: RunContext,
  request: ModelRequest,
  attempt: ModelAttempt,
  onProgress: OnProgress,
): Promise<Asked> {
  const { client } = attempt.target
  const { model, messages, streaming, temperature = null, maxOutputTokens = null } = request
  const facts = { chatId: run.chat.id, provider: client.provider, model, messages, streaming }
  return run.ports.within({ kind: 'model', ...facts, temperature, maxOutputTokens }, (report) =>
    askObserved(run, request, attempt, onProgress, report),
  )
}

async function askObserved(
  run: RunContext,
  request: ModelRequest,
  attempt: ModelAttempt,
  onProgress: OnProgress,
  report: Observe,
): Promise<Asked> {
  const { agent } = run.configuration
  const { client, prices, headers } = attempt.target
  const stop = run.stoppable()
  const begunAt = performance.now()
  let firstTokenMs: number | null = null
  const ended = (closing: UsageClosing, end: AttemptEnd) =>
    modelEnded(run, { ...attempt, begunAt, firstTokenMs }, closing, end)
  let answer: Answer
  try {
    const received = await client.attempt(request, {
      signal: stop.signal,
      timeoutMs: agent.timeoutMs,
      headers,
      idleMs: agent.idleMs,
      maxAnswerBytes: agent.maxAnswerBytes,
      onProgress: (progress) => {
        if (request.streaming && progress.type !== 'usage') firstTokenMs ??= performance.now() - begunAt
        return onProgress(progress)
      },
    })
    answer = wellFormedAnswer(received)
  } catch (error) {
    const aborted = stop.signal.aborted
    const status = aborted ? 'cancelled' : 'failed'
    const closing = usageClosing({ status, usage: attempt.usage, prices, error })
    report(ended(closing, { error }))
    await closeUsage(run, attempt, closing)
    run.claim.signal.throwIfAborted()
    if (aborted) return { kind: 'stopped' }
    if (error instanceof ProviderError) return { kind: 'failed', error }
    throw error
  } finally {
    stop.dispose()
  }
  const closing = usageClosing({ status: 'succeeded', usage: answer.usage ?? attempt.usage, prices })
  report(ended(closing, { answer }))
  await closeUsage(run, attempt, closing)
  run.publish({
    type: 'usage',
    messageId: attempt.messageId,
    inputTokens: closing.inputTokens,
    outputTokens: closing.outputTokens,
    cost: closing.totalCost,
  })
  return { kind: 'answered', answer }
}

/** Waits before another attempt at what failed. */
export async function pause(
  run: RunContext,
  ms: number,
  { number, target, error }: Pick<ModelAttempt, 'number' | 'target'> & { readonly error: ProviderError },
): Promise<'over' | 'stopped'> {
  const { client, model } = target
  const facts = { provider: client.provider, model, attempt: number, delayMs: ms, code: error.code }
  run.ports.observe({ type: 'model.retry', ...factsOf(run), ...facts })
  const stop = run.stoppable()
  try {
    await run.ports.clock.wait(ms, stop.signal)
    return 'over'
  } catch (error) {
    run.claim.signal.throwIfAborted()
    if (stop.signal.aborted) return 'stopped'
    throw error
  } finally {
    stop.dispose()
  }
}
