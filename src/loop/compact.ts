import { newMessage } from '../../models/new-message.ts'
import type { TranscriptMessage } from '../../models/rows.ts'
import type { NewMessage } from '../../models/turns.ts'
import { type ErrorFacts, errorFacts } from '../observability/error-facts.ts'
import type { Answer, ModelRequest } from '../providers/provider.ts'
import { retryDelayMs } from '../providers/retry.ts'
import { type Asked, askModel, type ModelAttempt, pause } from './ask-model.ts'
import { checkSummary } from './check-summary.ts'
import { closeAbandoned } from './close-calls.ts'
import { planCompaction } from './compaction-plan.ts'
import { contextWindow } from './context-limits.ts'
import { hookedRequest } from './model-request.ts'
import { ownTarget } from './model-target.ts'
import { withFiles } from './request-files.ts'
import { factsOf, type RunContext } from './run-context.ts'
import { replacedCharacters, type SummaryOrder, summaryRequest } from './summary-request.ts'
import { abandonedCalls } from './transcript.ts'
import { openUsage, usageLink } from './usage-entries.ts'
import { storableWord } from './well-formed-answer.ts'

export type Compacted =
  | { readonly kind: 'stored'; readonly message: TranscriptMessage }
  /** There is nothing that a summary could stand for. */
  | { readonly kind: 'nothing' }
  /** The turn was cancelled; nothing was stored. */
  | { readonly kind: 'stopped' }

/**
 * Has a model summarise the chat and commits the summary; nothing is deleted. What it stands for is fixed before the
 * request: what is written meanwhile stays, and comes after it.
 * @throws {SummaryRefusedError} when the summary can't be used. {ProviderError} when none could be had.
 */
export async function compact(run: RunContext, order: SummaryOrder): Promise<Compacted> {
  const begun = performance.now()
  const ended = (outcome: Compacted['kind'] | 'failed', error: ErrorFacts | null) =>
    run.ports.observe({
      type: 'compaction.ended',
      ...factsOf(run),
      outcome,
      durationMs: performance.now() - begun,
      error,
    })
  try {
    const compacted = await summarise(run, order)
    ended(compacted.kind, null)
    return compacted
  } catch (error) {
    ended('failed', errorFacts(error, run.ports.content))
    throw error
  }
}

async function summarise(run: RunContext, order: SummaryOrder): Promise<Compacted> {
  await closeAbandoned(run, abandonedCalls(run.transcript))
  await run.reload()
  if (run.chat.cancelTurn === run.chat.turn) return { kind: 'stopped' }
  const plan = planCompaction(run.transcript, order.keep)
  if (plan === null) return { kind: 'nothing' }
  const seen = run.chat.compactSeq
  const summary = summaryRequest(run, plan, order, await contextWindow(run))
  const { configuration } = run
  const { client } = configuration
  const request = await hookedRequest(
    run,
    client,
    await withFiles({ configuration, chatId: run.chat.id }, client, summary),
  )
  const messageId = run.ports.clock.newId()
  const usageIds: string[] = []
  const asked = await ask(run, request, messageId, usageIds)
  if (asked.kind === 'stopped') return asked
  checkSummary(run.chat.id, request.model, asked.answer, replacedCharacters(run, plan))
  const message = summaryMessage(run, messageId, asked.answer, plan.through)
  const link = usageLink(run, usageIds)
  if (!(await run.ports.rows.commitSummary(run.claim, { message, ...link, seen }))) return { kind: 'stopped' }
  return { kind: 'stored', message: run.appendAside(message) }
}

async function ask(
  run: RunContext,
  request: ModelRequest,
  messageId: string,
  usageIds: string[],
): Promise<Exclude<Asked, { kind: 'failed' }>> {
  const { clock } = run.ports
  const own = ownTarget(run)
  // The agent's prices are those of its model, not of another one that writes summaries.
  const target = { ...own, model: request.model, prices: request.model === own.model ? own.prices : null }
  for (let retries = 0; ; ) {
    run.claim.requireTime()
    const number = usageIds.length + 1
    const usageId = clock.newId()
    const attempt: ModelAttempt = { target, usageId, messageId, operation: 'compaction', number, usage: null }
    usageIds.push(attempt.usageId)
    await openUsage(run, attempt)
    const asked = await askModel(run, request, attempt, (progress) => {
      if (progress.type === 'usage') attempt.usage = progress.usage
    })
    if (asked.kind !== 'failed') return asked
    const delay = retries < run.configuration.agent.retries ? retryDelayMs(asked.error, ++retries, clock.random) : null
    if (delay === null) throw asked.error
    if ((await pause(run, delay, { ...attempt, error: asked.error })) === 'stopped') return { kind: 'stopped' }
  }
}

function summaryMessage(run: RunContext, id: string, answer: Answer, through: number): NewMessage {
  return newMessage({
    id,
    chatId: run.chat.id,
    role: 'assistant',
    content: answer.text.trim(),
    finishReason: storableWord(answer.finishReason),
    summaryThrough: through,
    createdAt: run.ports.clock.now(),
  })
}
