import type { UsageOperation } from '../../models/rows.ts'
import { ProviderError } from '../errors.ts'
import type { Answer, AnswerProgress, ModelRequest, TokenUsage } from '../providers/provider.ts'
import type { RunContext } from './run-context.ts'
import { usageClosing } from './usage-closing.ts'

/** One physical attempt at a model. */
export interface ModelAttempt {
  readonly usageId: string
  /** The message that the answer is to become. */
  readonly messageId: string
  readonly operation: UsageOperation
  /** What the provider has reported so far. */
  usage: TokenUsage | null
}

export type Asked =
  | { readonly kind: 'answered'; readonly answer: Answer }
  /** Something that another attempt may mend. */
  | { readonly kind: 'failed'; readonly error: ProviderError }
  | { readonly kind: 'stopped' }

/**
 * Makes one attempt. Its usage entry is closed whatever happens. Throws what no retry can mend: the claim, a hook, a bug.
 */
export async function askModel(
  run: RunContext,
  request: ModelRequest,
  attempt: ModelAttempt,
  onProgress: (progress: AnswerProgress) => void | Promise<void>,
): Promise<Asked> {
  const { rows } = run.ports
  const { client, agent } = run.configuration
  // The agent's prices are those of its model, not of another one that writes summaries.
  const prices = request.model === run.configuration.model ? agent.prices : null
  const stop = run.stoppable()
  try {
    const answer = await client.attempt(request, {
      signal: stop.signal,
      timeoutMs: agent.timeoutMs,
      idleMs: agent.idleMs,
      onProgress,
    })
    const closing = usageClosing({ status: 'succeeded', usage: answer.usage ?? attempt.usage, prices })
    await rows.closeUsage(attempt.usageId, closing)
    run.publish({
      type: 'usage',
      messageId: attempt.messageId,
      inputTokens: closing.inputTokens,
      outputTokens: closing.outputTokens,
      cost: closing.totalCost,
    })
    return { kind: 'answered', answer }
  } catch (error) {
    const aborted = stop.signal.aborted
    await rows.closeUsage(
      attempt.usageId,
      usageClosing({ status: aborted ? 'cancelled' : 'failed', usage: attempt.usage, prices, error }),
    )
    run.claim.signal.throwIfAborted()
    if (aborted) return { kind: 'stopped' }
    if (error instanceof ProviderError) return { kind: 'failed', error }
    throw error
  } finally {
    stop.dispose()
  }
}

/** Opens the usage entry of an attempt, before anything is sent. */
export async function openUsage(run: RunContext, attempt: ModelAttempt, model: string): Promise<void> {
  await run.ports.rows.openUsage({
    id: attempt.usageId,
    chatId: run.chat.id,
    // Viewers see nothing of a summary, so nothing of it can be left on their screens.
    answerId: attempt.operation === 'chat' ? attempt.messageId : null,
    operation: attempt.operation,
    provider: run.configuration.client.provider,
    model,
    claimToken: run.chat.claimToken,
  })
}

/** Waits before another attempt. */
export async function pause(run: RunContext, ms: number): Promise<'over' | 'stopped'> {
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
