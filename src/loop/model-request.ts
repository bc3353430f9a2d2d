import type { ChatRow, TranscriptMessage } from '../../models/rows.ts'
import type { ModelClient, ModelRequest, RequestMessage } from '../providers/provider.ts'
import { renderedBy } from './model-target.ts'
import { requestMessages, toolSpecs } from './request.ts'
import type { Configuration, RunContext } from './run-context.ts'

/** The next request for an answer, as the transcript and the chat's configuration say. */
export function modelRequest({
  chat,
  configuration,
  transcript,
}: Pick<RunContext, 'chat' | 'configuration'> & {
  readonly transcript: readonly TranscriptMessage[]
}): ModelRequest {
  const { settings, agent } = configuration
  const { calls } = settings.toolOptions ?? {}
  return {
    ...promptOf(configuration, transcript),
    ...said({
      maxOutputTokens: settings.maxOutputTokens,
      schema: settings.schema,
      toolChoice: choiceOf(chat, configuration, transcript),
      parallelToolCalls: calls === undefined ? null : calls !== 'one' && calls !== 1,
    }),
    streaming: agent.streaming,
  }
}

/**
 * What requests of a chat have in common, whatever they ask for, so that the provider's prompt cache serves them all.
 * @param through leaves out what comes after this position.
 */
export function promptOf(
  configuration: Configuration,
  transcript: readonly TranscriptMessage[],
  through?: number,
): Omit<ModelRequest, 'streaming'> {
  const { settings } = configuration
  const { caching } = settings
  const messages = requestMessages(transcript, configuration, through)
  return {
    model: configuration.model,
    messages: caching === false ? messages.map(withoutBoundary) : messages,
    tools: toolSpecs(configuration),
    ...said({
      temperature: settings.temperature,
      thinking: settings.thinking,
      endUser: settings.endUser,
      caching: caching === false || caching === null ? null : { key: transcript[0]?.chatId, ...caching },
      providerOptions: settings.providerOptions,
    }),
  }
}

/**
 * A choice that forces a call holds until the turn has had its round, or the model could never answer. The chat counts the turn's
 * rounds, also those before a message that steered it; but anew where a turn is tried again, so the transcript is asked too. (S82)
 */
function choiceOf(
  chat: Pick<ChatRow, 'rounds'>,
  { settings }: Configuration,
  transcript: readonly TranscriptMessage[],
): ModelRequest['toolChoice'] | null {
  const { choice } = settings.toolOptions ?? {}
  if (choice === undefined) return null
  if (choice === 'auto' || choice === 'none') return choice
  const question = transcript.findLastIndex((message) => message.role === 'user')
  const hadRound = chat.rounds > 0 || transcript.slice(question + 1).some((message) => message.toolCalls.length > 0)
  if (hadRound) return null
  return choice === 'required' ? choice : { name: choice }
}

function withoutBoundary(message: RequestMessage): RequestMessage {
  return message.cacheUntilHere === undefined ? message : { ...message, cacheUntilHere: undefined }
}

/** What was said; null is nothing. */
function said<T extends object>(values: T): { [Key in keyof T]?: Exclude<T[Key], null> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null)) as {
    [Key in keyof T]?: Exclude<T[Key], null>
  }
}

/** The request with its body made, where a hook wants to see it or to change it; every attempt sends that one. */
export async function hookedRequest(
  run: Pick<RunContext, 'hooks'>,
  client: ModelClient,
  request: ModelRequest,
): Promise<ModelRequest> {
  if (!run.hooks.has('beforeRequest')) return request
  const payload = renderedBy(client, request)
  await run.hooks.call('beforeRequest', payload)
  return { ...request, payload }
}
