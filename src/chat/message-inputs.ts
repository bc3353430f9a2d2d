import { InvalidMessageError } from '../errors.ts'
import { isPlainObject, shown } from '../messages/check.ts'
import { MessageValue, TextMessage, ToolCallMessage, ToolResultMessage } from '../messages/message.ts'
import type { ToolMessage } from '../messages/tool-message.ts'
import { UserMessage } from '../messages/user-message.ts'
import type { AddedMessageInput } from './added-message.ts'
import { storedResult, type TranscriptValue } from './message-values.ts'

/** A message to add as a value. */
export type AddedValue = TranscriptValue | UserMessage

/** Whether something is one of the message values, or a list of them. */
export function isValues(given: unknown): given is AddedValue | readonly AddedValue[] {
  const list = Array.isArray(given) ? given : [given]
  return list.length > 0 && list.every((one) => one instanceof MessageValue || one instanceof UserMessage)
}

/**
 * Values as messages to add: a text that stops for tools and the calls right behind it become one.
 * @throws {InvalidMessageError} for what no row can hold.
 */
export function inputsOf(given: AddedValue | readonly AddedValue[]): AddedMessageInput[] {
  const values = Array.isArray(given) ? (given as readonly AddedValue[]) : [given as AddedValue]
  const inputs: AddedMessageInput[] = []
  for (const [at, value] of values.entries()) {
    const before = values[at - 1]
    const follows = value instanceof ToolCallMessage && before instanceof TextMessage && isHead(before)
    if (follows) inputs.pop()
    inputs.push(atPlace(values.length > 1 ? at : null, () => inputOf(value, follows ? textOf(before) : null)))
  }
  return inputs
}

/** Of a list, an error names the place too. */
function atPlace<Input>(at: number | null, make: () => Input): Input {
  try {
    return make()
  } catch (error) {
    if (at === null || !(error instanceof InvalidMessageError)) throw error
    throw new InvalidMessageError(`messages[${at}]: ${error.message}`)
  }
}

function isHead(message: TextMessage): boolean {
  return message.assistant() && message.toolStop()
}

function inputOf(value: AddedValue, text: string | null): AddedMessageInput {
  if (value instanceof UserMessage) return { role: 'user', content: value.content }
  if (value instanceof ToolResultMessage) {
    const { content, outcome, encoding } = storedResult(value)
    return { role: 'tool', content, encoding, isError: outcome === 'failed', toolCallId: idOf(value.tool) }
  }
  if (value instanceof ToolCallMessage) {
    if (value.tools.length === 0) throw new InvalidMessageError('A ToolCallMessage without tools can not be stored.')
    return { role: 'assistant', content: text, finishReason: 'tool_calls', toolCalls: value.tools.map(callOf) }
  }
  if (value.role === 'tool_result') {
    throw new InvalidMessageError('A TextMessage of role tool_result can not be stored: use a ToolResultMessage.')
  }
  const content = textOf(value)
  if (value.role !== 'assistant') return { role: value.role, content }
  const finishReason = { stop: 'stop', tool: 'tool_calls', none: null }[value.stopReason ?? 'none']
  return { role: 'assistant', content, finishReason }
}

function textOf(message: TextMessage): string {
  if (typeof message.content === 'string') return message.content
  throw new InvalidMessageError(`The content of a stored message is a text, not ${shown(message.content)}.`)
}

function callOf(tool: ToolMessage) {
  if (typeof tool.name !== 'string' || tool.name === '') {
    throw new InvalidMessageError(`A stored tool call has a name, not ${shown(tool.name)}.`)
  }
  if (!isPlainObject(tool.input)) {
    throw new InvalidMessageError(`The input of a stored tool call is an object, not ${shown(tool.input)}.`)
  }
  return { id: idOf(tool), name: tool.name, arguments: tool.input }
}

function idOf({ id }: ToolMessage): string {
  if (typeof id === 'string' && id !== '') return id
  throw new InvalidMessageError(`A stored tool call has an id, not ${shown(id)}.`)
}
