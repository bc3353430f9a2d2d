import type { FallbackModel, JsonObject } from '../../models/rows.ts'
import { ConfigurationError, ProviderError } from '../errors.ts'
import type { Answer, ModelClient, ModelRequest, Prices } from '../providers/provider.ts'
import { defaultTriggers, type Fallback } from '../tools/fallback.ts'
import type { RunContext } from './run-context.ts'

/** A model to ask, and by what. */
export interface ModelTarget {
  readonly client: ModelClient
  readonly model: string
  /** USD per million tokens; null = not known. */
  readonly prices: Prices | null
  /** Sent beside those of the protocol. */
  readonly headers: Readonly<Record<string, string>>
  /** Whether it belongs to another provider than the chat's own model. */
  readonly foreign: boolean
}

/** The chat's own model. */
export function ownTarget({ configuration }: Pick<RunContext, 'configuration'>): ModelTarget {
  const { client, model, agent, headers } = configuration
  return { client, model, prices: agent.prices, headers, foreign: false }
}

/** What is asked in place of a model that failed, and what is told of it. */
export interface FallbackStep {
  readonly target: ModelTarget
  readonly told: Fallback
}

/**
 * The next model after an error; null where there is none, or the error is of a kind that another model would not mend.
 * @param standIns those that were not tried yet; what is tried is taken from them.
 * @param failed counts the models that have failed so far from 1.
 */
export function nextTarget(
  run: RunContext,
  standIns: FallbackModel[],
  failed: { readonly number: number; readonly target: ModelTarget; readonly error: Error; readonly shown: boolean },
): FallbackStep | null {
  const { settings, agent } = run.configuration
  if (!isTrigger(failed.error, settings.fallbacks?.on)) return null
  const target = firstReachable(run, standIns)
  if (target === null) return null
  const to: FallbackModel = { model: target.model, provider: target.client.provider }
  const told: Fallback = {
    id: run.ports.clock.newId(),
    provider: target.client.provider,
    model: target.model,
    from: { model: failed.target.model, provider: failed.target.client.provider },
    to,
    error: failed.error,
    attempt: failed.number,
    streaming: () => agent.streaming,
    chunksYielded: () => failed.shown,
  }
  return { target, told }
}

/** The same request for another model: what only the chat's own provider can read again stays out. */
export function requestFor(request: ModelRequest, { model, foreign }: ModelTarget): ModelRequest {
  if (!foreign) return { ...request, model }
  const messages = request.messages.map((message) =>
    message.role === 'assistant' ? withoutReasoningOf(message) : message,
  )
  return { ...request, model, messages }
}

/** What is stored of an answer: the chat's own provider is asked next, and can't read what another one wants back. */
export function storableAnswer(answer: Answer, { foreign }: ModelTarget): Answer {
  return foreign ? withoutReasoningOf(answer) : answer
}

/** A message without what is proof or raw material to one provider alone; the reasoning that people read stays. */
function withoutReasoningOf<Call extends object, Message extends { readonly toolCalls: readonly Call[] }>(
  message: Message,
): Message {
  const toolCalls = message.toolCalls.map((call) => ({ ...call, thoughtSignature: null }))
  return { ...message, rawReasoning: null, thinkingSignature: null, toolCalls }
}

/** One whose provider this process has no client for is passed over: the answer may still come from the next one. */
function firstReachable(run: RunContext, standIns: FallbackModel[]): ModelTarget | null {
  for (let next = standIns.shift(); next !== undefined; next = standIns.shift()) {
    try {
      const { configuration } = run
      const client = configuration.clientFor(next.provider)
      const foreign = client.provider !== configuration.client.provider
      // Headers may hold a secret, which is the chat's own provider's alone.
      return { client, model: next.model, prices: null, headers: foreign ? {} : configuration.headers, foreign }
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error
      run.ports.observe({ type: 'notice', message: `Fallback ${next.model} can't be asked: ${error.message}` })
    }
  }
  return null
}

function isTrigger(error: unknown, on: readonly string[] = defaultTriggers): boolean {
  return error instanceof ProviderError && on.includes(error.code)
}

/** The body that a client would send, to be changed at will. @throws {ConfigurationError} for a client that can't say it. */
export function renderedBy(client: ModelClient, request: ModelRequest): JsonObject {
  if (client.render !== undefined) return structuredClone(client.render(request))
  throw new ConfigurationError(
    `The client of provider ${client.provider} has no render(): beforeRequest and chat.render() need one.`,
  )
}
