import type { TranscriptMessage } from '../../models/rows.ts'
import type { ModelClient, ModelRequest } from '../providers/provider.ts'
import { renderedBy } from './model-target.ts'
import { requestMessages, toolSpecs } from './request.ts'
import type { RunContext } from './run-context.ts'

/** The next request for an answer, as the transcript and the chat's configuration say. */
export function modelRequest({
  configuration,
  transcript,
}: Pick<RunContext, 'configuration'> & { readonly transcript: readonly TranscriptMessage[] }): ModelRequest {
  return {
    model: configuration.model,
    messages: requestMessages(transcript, configuration.instructions),
    tools: toolSpecs(configuration),
    ...(configuration.temperature === null ? {} : { temperature: configuration.temperature }),
    ...(configuration.maxOutputTokens === null ? {} : { maxOutputTokens: configuration.maxOutputTokens }),
    streaming: configuration.agent.streaming,
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
