import type { MessageRow, TranscriptMessage } from '../../models/rows.ts'
import type { NewMessage } from '../../models/turns.ts'
import { EmptyAnswerError } from '../errors.ts'
import { eventToolCall } from '../events/tool-call.ts'
import type { Answer, AnswerProgress, ModelRequest } from '../providers/provider.ts'
import { retryDelayMs } from '../providers/retry.ts'
import { type Asked, askModel, type ModelAttempt, openUsage, pause } from './ask-model.ts'
import { measuredTokens } from './context-size.ts'
import { modelRequest } from './model-request.ts'
import { newToolCalls } from './new-tool-calls.ts'
import type { RunContext } from './run-context.ts'
import { ShownChunk } from './shown-chunk.ts'

/** One physical attempt at an answer: what was shown of it, what it used. */
interface Attempt extends ModelAttempt {
  text: string
  thinking: string
  chunks: number
}

/**
 * Asks the model and commits its answer; physical retries are part of it. Returns the message, or null when the turn was
 * cancelled meanwhile: what was shown of the answer is in `run.shown` then.
 */
export async function generate(run: RunContext): Promise<TranscriptMessage | null> {
  const { clock } = run.ports
  const request = modelRequest(run)
  const usageIds: string[] = []
  let messageId = clock.newId()
  let emptyAnswers = 0
  run.replaceDraft(messageId)
  for (let retries = 0; ; ) {
    run.claim.requireTime()
    const attempt = newAttempt(messageId, clock.newId(), usageIds.length + 1)
    usageIds.push(attempt.usageId)
    const asked = await ask(run, request, attempt)
    if (asked.kind === 'stopped') return cancelled(run, attempt, usageIds)
    if (asked.kind === 'answered' && !isEmpty(asked.answer)) return commit(run, attempt, asked.answer, usageIds)

    const error = asked.kind === 'failed' ? asked.error : emptyAnswer(run)
    if (asked.kind === 'answered') {
      if (++emptyAnswers > 1) throw error
    } else {
      const delay = retries < run.configuration.agent.retries ? retryDelayMs(error, ++retries, clock.random) : null
      if (delay === null) throw error
      if ((await pause(run, delay, { ...attempt, model: request.model, error: asked.error })) === 'stopped')
        return cancelled(run, attempt, usageIds)
    }
    messageId = clock.newId()
    if (attempt.chunks > 0) run.publish({ type: 'attempt.restarted', messageId, replaces: attempt.messageId })
  }
}

function newAttempt(messageId: string, usageId: string, number: number): Attempt {
  return { messageId, usageId, operation: 'chat', number, text: '', thinking: '', chunks: 0, usage: null }
}

/** Shows viewers that an attempt begins, and makes it. */
async function ask(run: RunContext, request: ModelRequest, attempt: Attempt): Promise<Asked> {
  await openUsage(run, attempt, request.model)
  run.publish({ type: 'message.started', messageId: attempt.messageId, model: request.model })
  return askModel(run, request, attempt, (progress) => show(run, attempt, progress))
}

async function show(run: RunContext, attempt: Attempt, progress: AnswerProgress): Promise<void> {
  if (progress.type === 'usage') {
    attempt.usage = progress.usage
    return
  }
  const { messageId } = attempt
  if (progress.type === 'text') attempt.text += progress.text
  else attempt.thinking += progress.text
  const delta = { type: `${progress.type}.delta`, messageId, text: progress.text } as const
  const mode = run.configuration.agent.broadcast
  if (mode === 'auto' && delta.text !== '') run.publish(delta)
  const index = attempt.chunks++
  await run.order.onChunk?.(
    new ShownChunk({ message: unsaved(run, attempt), index, delta }, mode, (sent) => run.publish(sent)),
  )
}

function unsaved(run: RunContext, attempt: Attempt): MessageRow {
  const message = assistantMessage(run, attempt.messageId, { text: attempt.text, thinking: attempt.thinking || null })
  return { ...message, position: (run.transcript.at(-1)?.position ?? -1) + 1, updatedAt: message.createdAt }
}

async function commit(
  run: RunContext,
  attempt: Attempt,
  answer: Answer,
  usageIds: readonly string[],
): Promise<TranscriptMessage | null> {
  const message = assistantMessage(run, attempt.messageId, answer)
  const toolCalls = newToolCalls(run, message, answer)
  if (!(await run.ports.rows.commitAnswer(run.claim, { message, toolCalls, usageIds }))) {
    return cancelled(run, attempt, usageIds)
  }
  const { content, finishReason } = message
  run.publish({ type: 'message.finished', messageId: message.id, text: content, finishReason })
  for (const call of toolCalls) {
    run.publish({ type: 'tool_call.requested', messageId: message.id, toolCall: eventToolCall(call) })
  }
  if (toolCalls.length > 0) run.chat.rounds++
  const tokens = measuredTokens(answer.usage ?? attempt.usage)
  if (tokens !== null) run.measured = { messageId: message.id, tokens }
  return run.append(message, toolCalls)
}

/** Only what was shown is kept: the settling move makes a message of it. */
function cancelled(run: RunContext, attempt: Attempt, usageIds: readonly string[]): null {
  const message =
    attempt.text === ''
      ? null
      : {
          ...assistantMessage(run, attempt.messageId, { text: attempt.text, thinking: attempt.thinking || null }),
          finishReason: 'cancelled',
        }
  run.shown = { message, usageIds }
  run.fresh = false
  return null
}

function assistantMessage(
  run: RunContext,
  id: string,
  answer: Pick<Answer, 'text' | 'thinking'> & Partial<Answer>,
): NewMessage {
  return {
    id,
    chatId: run.chat.id,
    role: 'assistant',
    content: answer.text === '' ? null : answer.text,
    thinkingText: answer.thinking,
    thinkingSignature: answer.thinkingSignature ?? null,
    rawReasoning: answer.rawReasoning ?? null,
    citations: answer.citations ?? null,
    finishReason: answer.finishReason ?? null,
    outcome: null,
    summaryThrough: null,
    createdAt: run.ports.clock.now(),
  }
}

function isEmpty(answer: Answer): boolean {
  return answer.text === '' && answer.toolCalls.length === 0
}

function emptyAnswer(run: RunContext): EmptyAnswerError {
  return new EmptyAnswerError(
    `Model ${run.configuration.model} answered chat ${run.chat.id} with neither text nor tool calls, twice. ` +
      'Run complete() again, or change the question or the model.',
    { chatId: run.chat.id },
  )
}
