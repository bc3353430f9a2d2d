import type { ModelRequest } from '../providers/provider.ts'
import { requestMessages, toolSpecs } from './request.ts'
import type { RunContext } from './run-context.ts'

/** The next request for an answer, as the transcript and the chat's configuration say. */
export function modelRequest(run: RunContext): ModelRequest {
  const { configuration, transcript } = run
  return {
    model: configuration.model,
    messages: requestMessages(transcript, configuration.instructions),
    tools: toolSpecs(configuration),
    ...(configuration.temperature === null ? {} : { temperature: configuration.temperature }),
    ...(configuration.maxOutputTokens === null ? {} : { maxOutputTokens: configuration.maxOutputTokens }),
    streaming: configuration.agent.streaming,
  }
}
