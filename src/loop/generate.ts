import { newMessage } from '../../models/new-message.ts'
import type { MessageRow, TranscriptMessage } from '../../models/rows.ts'
import type { NewMessage } from '../../models/turns.ts'
import { EmptyAnswerError, type ProviderError } from '../errors.ts'
import { eventToolCall } from '../events/tool-call.ts'
import type { Answer, AnswerProgress, ModelRequest } from '../providers/provider.ts'
import { retryDelayMs } from '../providers/retry.ts'
import type { Fallback } from '../tools/fallback.ts'
import { wellFormed } from '../tools/results.ts'
import { type Asked, askModel, type ModelAttempt, pause } from './ask-model.ts'
import { measuredTokens } from './context-size.ts'
import { hookedRequest, modelRequest } from './model-request.ts'
import { type ModelTarget, nextTarget, ownTarget, requestFor, storableAnswer } from './model-target.ts'
import { newToolCalls } from './new-tool-calls.ts'
import { withFiles } from './request-files.ts'
import type { RunContext } from './run-context.ts'
import { ShownChunk } from './shown-chunk.ts'
import { openUsage, usageLink } from './usage-entries.ts'
import { storableWord } from './well-formed-answer.ts'

/** One physical attempt at an answer: what was shown of it, what it used. */
interface Attempt extends ModelAttempt {
  text: string
  thinking: string
  chunks: number
}

/** One answer in the making, by whichever model in the end. */
interface Answering {
  /** That of the attempt that comes next. */
  messageId: string
  /** Of all attempts at it. */
  readonly usageIds: string[]
}

type Tried = { readonly attempt: Attempt } & (
  | { readonly kind: 'answered'; readonly answer: Answer }
  | { readonly kind: 'failed'; readonly error: ProviderError }
  | { readonly kind: 'stopped' }
)

/**
 * Asks the model and commits its answer; physical retries are part of it, and so are the models that stand in for one that
 * fails. Returns the message, or null when the turn was cancelled meanwhile: what was shown of the answer is in `run.shown`
 * then.
 */
export async function generate(run: RunContext): Promise<TranscriptMessage | null> {
  const request = modelRequest(run)
  const answering: Answering = { messageId: run.ports.clock.newId(), usageIds: [] }
  const standIns = [...(run.configuration.settings.fallbacks?.models ?? [])]
  run.replaceDraft(answering.messageId)
  let target = ownTarget(run)
  let told: Fallback | null = null
  for (let failed = 1; ; failed++) {
    const tried = await tryTarget(run, target, requestFor(request, target), answering)
    const { attempt } = tried
    if (tried.kind === 'stopped') return cancelled(run, attempt, answering.usageIds)
    if (tried.kind === 'answered') {
      const message = await commit(run, attempt, storableAnswer(tried.answer, target), answering.usageIds)
      if (told !== null) await run.hooks.call('afterFallback', { ...told, response: tried.answer })
      if (message !== null) await run.hooks.call('afterMessage', message)
      return message
    }
    const { error } = tried
    if (told !== null) await run.hooks.call('afterFallback', { ...told, fallbackError: error })
    const next = nextTarget(run, standIns, { number: failed, target, error, shown: attempt.chunks > 0 })
    if (next === null) throw error
    target = next.target
    told = next.told
    await run.hooks.call('beforeFallback', told)
    beginAnew(run, answering, attempt)
  }
}

/** Asks one model, as often as its kind of failure allows. */
async function tryTarget(
  run: RunContext,
  target: ModelTarget,
  asked: ModelRequest,
  answering: Answering,
): Promise<Tried> {
  const { clock } = run.ports
  await run.hooks.call('beforeMessage')
  const request = await hookedRequest(
    run,
    target.client,
    await withFiles({ configuration: run.configuration, chatId: run.chat.id }, target.client, asked),
  )
  let emptyAnswers = 0
  for (let retries = 0; ; ) {
    run.claim.requireTime()
    const attempt = newAttempt(answering, target, clock.newId())
    answering.usageIds.push(attempt.usageId)
    const asked = await ask(run, request, attempt)
    if (asked.kind === 'stopped') return { kind: 'stopped', attempt }
    if (asked.kind === 'answered' && !isEmpty(asked.answer)) return { ...asked, attempt }

    const error = asked.kind === 'failed' ? asked.error : emptyAnswer(run, target.model)
    if (asked.kind === 'answered') {
      if (++emptyAnswers > 1) return { kind: 'failed', error, attempt }
    } else {
      const delay = retries < run.configuration.agent.retries ? retryDelayMs(error, ++retries, clock.random) : null
      if (delay === null) return { kind: 'failed', error, attempt }
      if ((await pause(run, delay, { ...attempt, error })) === 'stopped') return { kind: 'stopped', attempt }
    }
    if (attempt.chunks > 0) await run.hooks.call('beforeMessage')
    beginAnew(run, answering, attempt)
  }
}

/** The next attempt is another message; what was shown of the last one is void. */
function beginAnew(run: RunContext, answering: Answering, last: Attempt): void {
  answering.messageId = run.ports.clock.newId()
  if (last.chunks === 0) return
  run.publish({ type: 'attempt.restarted', messageId: answering.messageId, replaces: last.messageId })
}

function newAttempt({ messageId, usageIds }: Answering, target: ModelTarget, usageId: string): Attempt {
  const number = usageIds.length + 1
  return { target, messageId, usageId, operation: 'chat', number, text: '', thinking: '', chunks: 0, usage: null }
}

/** Shows viewers that an attempt begins, and makes it. */
async function ask(run: RunContext, request: ModelRequest, attempt: Attempt): Promise<Asked> {
  await openUsage(run, attempt)
  run.publish({ type: 'message.started', messageId: attempt.messageId, model: request.model })
  return askModel(run, request, attempt, (progress) => show(run, attempt, progress))
}

async function show(run: RunContext, attempt: Attempt, progress: AnswerProgress): Promise<void> {
  if (progress.type === 'usage') {
    attempt.usage = progress.usage
    return
  }
  const { messageId } = attempt
  if (progress.type === 'thinking' && hidesThinking(run)) return
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
  const link = usageLink(run, usageIds)
  if (!(await run.ports.rows.commitAnswer(run.claim, { message, toolCalls, ...link }))) {
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
  return newMessage({
    id,
    chatId: run.chat.id,
    role: 'assistant',
    content: answer.text === '' ? null : wellFormed(answer.text),
    thinkingText: hidesThinking(run) || answer.thinking === null ? null : wellFormed(answer.thinking),
    thinkingSignature: answer.thinkingSignature ?? null,
    rawReasoning: answer.rawReasoning ?? null,
    citations: run.configuration.settings.citations === false ? null : (answer.citations ?? null),
    finishReason: answer.finishReason === undefined ? null : storableWord(answer.finishReason),
    createdAt: run.ports.clock.now(),
  })
}

/** What the provider wants back of its reasoning is kept all the same. */
function hidesThinking({ configuration }: RunContext): boolean {
  const { thinking } = configuration.settings
  return thinking !== null && thinking !== false && thinking.display === 'omitted'
}

function isEmpty(answer: Answer): boolean {
  return answer.text === '' && answer.toolCalls.length === 0
}

function emptyAnswer(run: RunContext, model: string): EmptyAnswerError {
  return new EmptyAnswerError(
    `Model ${model} answered chat ${run.chat.id} with neither text nor tool calls, twice. ` +
      'Run complete() again, or change the question or the model.',
    { chatId: run.chat.id },
  )
}
