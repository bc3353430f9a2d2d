import { type Agent, defineAgent, defineTool, openAiClient, type Tool } from '../../src/index.ts'
import { fetchInPieces } from '../providers/scripted-server.ts'
import { agentName, type Conversation, hasAddresses, readConversation, recordedFiles } from './recordings.ts'

// What an application would have to run the recorded conversations: for each its model, its tools, its settings. What
// the tools come to is told by the test's own process, at REPLAY_URL.

const replayUrl = process.env.REPLAY_URL ?? ''

export const agents: readonly Agent[] = recordedFiles()
  .map((file) => readConversation(file))
  .filter((conversation) => !hasAddresses(conversation))
  .flatMap((conversation) => [agentOf(conversation, true), agentOf(conversation, false)])

function agentOf(conversation: Conversation, streaming: boolean): Agent {
  const { file, provider, exchanges } = conversation
  const request = exchanges[0]?.request
  if (request === undefined) throw new Error(`${file} holds no exchange`)
  const base = `${replayUrl}/${encodeURIComponent(file)}`
  return defineAgent({
    name: agentName(file, streaming),
    model: request.body.model,
    client: openAiClient({
      apiKey: 'recorded-key',
      baseURL: base + request.base_path,
      provider,
      fetch: fetchInPieces(7),
    }),
    tools: toolsOf(conversation, `${base}/result`),
    temperature: request.body.temperature,
    streaming,
    rounds: 100,
    retries: 0,
    attempts: 1,
  })
}

function toolsOf({ exchanges }: Conversation, resultUrl: string): Tool[] {
  // A result that no request shows was never asked of a tool: a person is left to decide about such a call.
  const unanswered = (exchanges.at(-1)?.expected.tool_calls ?? []).length > 0
  const offered = exchanges.flatMap(({ request }) => request.body.tools ?? [])
  const byName = new Map(offered.map((tool) => [tool.function.name, tool.function]))
  return [...byName.values()].map(({ name, description, parameters }) =>
    defineTool({
      name,
      description,
      // Closed unless they say otherwise, which plain JSON Schema is not: models made up arguments of their own.
      parameters: { additionalProperties: true, type: 'object', properties: {}, ...parameters },
      requiresApproval: unanswered,
      async execute(_args, { toolCall, signal }) {
        const callId = toolCall.providerCallId ?? toolCall.toolCallId
        const response = await fetch(resultUrl, { method: 'POST', body: JSON.stringify({ callId }), signal })
        if (!response.ok) throw new Error(await response.text())
        const { content } = (await response.json()) as { content: string }
        return content
      },
    }),
  )
}
