import type { FallbackModel, JsonObject } from '../../models/rows.ts'
import { ConfigurationError, ProviderError } from '../errors.ts'
import type { ModelClient, ModelRequest, Prices } from '../providers/provider.ts'
import { defaultTriggers, type Fallback } from '../tools/fallback.ts'
import type { RunContext } from './run-context.ts'

/** A model to ask, and by what. */
export interface ModelTarget {
  readonly client: ModelClient
  readonly model: string
  /** USD per million tokens; null = not known. */
  readonly prices: Prices | null
}

/** The chat's own model. */
export function ownTarget({ configuration }: Pick<RunContext, 'configuration'>): ModelTarget {
  const { client, model, agent } = configuration
  return { client, model, prices: agent.prices }
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
export function requestFor(request: ModelRequest, target: ModelTarget, own: ModelTarget): ModelRequest {
  if (target.client.provider === own.client.provider) return { ...request, model: target.model }
  const messages = request.messages.map((message) =>
    message.role === 'assistant' ? { ...message, rawReasoning: null, thinkingSignature: null } : message,
  )
  return { ...request, model: target.model, messages }
}

/** One whose provider this process has no client for is passed over: the answer may still come from the next one. */
function firstReachable(run: RunContext, standIns: FallbackModel[]): ModelTarget | null {
  for (let next = standIns.shift(); next !== undefined; next = standIns.shift()) {
    try {
      return { client: run.configuration.clientFor(next.provider), model: next.model, prices: null }
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
