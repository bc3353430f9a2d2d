import stringify from 'safe-stable-stringify'
import type { AttachmentValue, ToolCallRow, TranscriptMessage } from '../../models/rows.ts'
import type { RequestMessage, RequestToolCall, ToolSpec } from '../providers/provider.ts'
import { interruptedCall } from '../tools/results.ts'
import type { Configuration } from './run-context.ts'
import { currentMessages, newestSummary } from './transcript.ts'

/**
 * A transcript as a model can be sent it: system messages first, each round's results right after its calls in the
 * model's order, blank messages and results without a call left out, calls without a result closed for this request.
 * A transcript from elsewhere may be damaged; it must never block its chat. What the newest summary stands for is not sent,
 * the summary itself comes first.
 * @param through leaves out what comes after this position; results are sent with their calls wherever they stand.
 */
export function requestMessages(
  transcript: readonly TranscriptMessage[],
  { instructions, ownInstructions: own }: Pick<Configuration, 'instructions' | 'ownInstructions'>,
  through = Number.POSITIVE_INFINITY,
): RequestMessage[] {
  const results = new Map(
    transcript.filter((message) => message.role === 'tool').map((message) => [message.id, message] as const),
  )
  const stored = transcript.filter((message) => message.role === 'system')
  const said: RequestMessage[] =
    stored.length > 0
      ? systemMessages(stored)
      : systemMessages(instructions === null ? [] : [{ content: instructions, cacheBoundary: null }])
  const messages = [...(own === null || own.append ? said : []), ...systemMessages(own?.said ?? [])]
  const summary = newestSummary(transcript)
  // As the user's, which every protocol takes in first place.
  if (summary !== null) messages.push({ role: 'user', content: `${summaryHeading}${summary.content ?? ''}` })
  for (const message of currentMessages(transcript)) {
    if (message.position > through) break
    if (message.role === 'user') messages.push(question(message))
    if (message.role === 'assistant') messages.push(...round(message, results))
  }
  return messages
}

const summaryHeading = 'Summary of the conversation so far:\n\n'

type Said = Pick<TranscriptMessage, 'content' | 'cacheBoundary'>

function systemMessages(said: readonly Said[]): RequestMessage[] {
  return said.map((one) => ({ role: 'system', content: one.content ?? '', ...boundary(one) }))
}

function question(message: TranscriptMessage): RequestMessage {
  return { role: 'user', content: message.content ?? '', ...filesOf(message), ...boundary(message) }
}

function filesOf({ attachments }: TranscriptMessage): { readonly attachments?: readonly AttachmentValue[] } {
  return attachments === null || attachments.length === 0 ? {} : { attachments }
}

function boundary({ cacheBoundary }: Pick<TranscriptMessage, 'cacheBoundary'>): Pick<RequestMessage, 'cacheUntilHere'> {
  return cacheBoundary === null ? {} : { cacheUntilHere: cacheBoundary }
}

/** The tools that a request offers. */
export function toolSpecs(configuration: Configuration): ToolSpec[] {
  return [...configuration.tools.values()].map(({ name, description, parameters }) => ({
    name,
    description,
    parameters,
  }))
}

function round(message: TranscriptMessage, results: ReadonlyMap<string, TranscriptMessage>): RequestMessage[] {
  const ids = wireIds(message.toolCalls)
  const assistant: RequestMessage = {
    role: 'assistant',
    content: message.content === '' ? null : message.content,
    thinking: message.thinkingText,
    thinkingSignature: message.thinkingSignature,
    rawReasoning: message.rawReasoning,
    toolCalls: message.toolCalls.map((call) => requestToolCall(call, ids)),
    ...boundary(message),
  }
  const answers = message.toolCalls.map((call): RequestMessage => {
    const result = call.resultId === null ? undefined : results.get(call.resultId)
    const content =
      (result?.content ?? interruptedCall(call.name, 'its round was given up before it ended')) + editedNote(call)
    return {
      role: 'tool',
      callId: ids.get(call) ?? call.id,
      name: call.name,
      content,
      ...(result === undefined ? {} : { ...filesOf(result), ...boundary(result) }),
    }
  })
  return [assistant, ...answers]
}

/** The model sees its own arguments, so it is told of those in their place; whether the call ran with them its result says. */
function editedNote({ editedArguments }: ToolCallRow): string {
  if (editedArguments === null) return ''
  return `\n\nA person changed the arguments of this call to: ${stringify(editedArguments)}`
}

function requestToolCall(call: ToolCallRow, ids: ReadonlyMap<ToolCallRow, string>): RequestToolCall {
  return {
    id: ids.get(call) ?? call.id,
    name: call.name,
    argumentsText: call.malformedArguments ?? JSON.stringify(call.arguments),
    thoughtSignature: call.thoughtSignature,
  }
}

/** What the provider knows each call by. Of damaged rows two can have one id, which no provider takes within a round. (E105) */
function wireIds(calls: readonly ToolCallRow[]): ReadonlyMap<ToolCallRow, string> {
  const ids = new Map<ToolCallRow, string>()
  const taken = new Set<string>()
  for (const call of calls) {
    const known = [call.providerCallId, call.toolCallId].find((id) => id !== null && id !== '' && !taken.has(id))
    ids.set(call, known ?? call.id)
    taken.add(known ?? call.id)
  }
  return ids
}
