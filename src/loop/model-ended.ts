import type { UsageOperation } from '../../models/rows.ts'
import type { UsageClosing } from '../../models/usages.ts'
import { errorFacts } from '../observability/error-facts.ts'
import type { ModelEnded } from '../observability/observation.ts'
import type { Answer } from '../providers/provider.ts'
import type { ModelTarget } from './model-target.ts'
import { factsOf, type RunContext } from './run-context.ts'

/** What is known of an attempt at its end. */
export interface EndedAttempt {
  readonly messageId: string
  readonly operation: UsageOperation
  readonly target: ModelTarget
  readonly number: number
  readonly begunAt: number
  readonly firstTokenMs: number | null
}

export type AttemptEnd = { readonly answer: Answer } | { readonly error: unknown }

/** An attempt as it is observed. */
export function modelEnded(run: RunContext, attempt: EndedAttempt, closing: UsageClosing, end: AttemptEnd): ModelEnded {
  const { content } = run.ports
  const answer = 'answer' in end ? end.answer : null
  const failed = 'error' in end && closing.status === 'failed'
  return {
    type: 'model.ended',
    ...factsOf(run),
    messageId: attempt.messageId,
    operation: attempt.operation,
    provider: attempt.target.client.provider,
    model: attempt.target.model,
    responseModel: answer?.model ?? null,
    responseId: answer?.responseId ?? null,
    status: closing.status,
    attempt: attempt.number,
    inputTokens: closing.inputTokens,
    outputTokens: closing.outputTokens,
    cacheReadTokens: closing.cacheReadTokens,
    cacheWriteTokens: closing.cacheWriteTokens,
    thinkingTokens: closing.thinkingTokens,
    costUsd: closing.totalCost,
    firstTokenMs: attempt.firstTokenMs,
    durationMs: performance.now() - attempt.begunAt,
    finishReason: answer?.finishReason ?? null,
    error: failed ? errorFacts(end.error, content) : null,
    content: content(answer?.text ?? null),
  }
}
