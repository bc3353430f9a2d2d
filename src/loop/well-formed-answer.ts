import type { Json } from '../../models/rows.ts'
import type { Answer, AnswerToolCall } from '../providers/provider.ts'
import { wellFormed } from '../tools/results.ts'

const wordLimit = 255

/** An answer as every database stores it and every provider takes it back: U+FFFD in place of halves of characters. (E107) */
export function wellFormedAnswer(answer: Answer): Answer {
  return {
    ...answer,
    text: wellFormed(answer.text),
    thinking: textOrNull(answer.thinking),
    thinkingSignature: textOrNull(answer.thinkingSignature),
    rawReasoning: wellFormedJson(answer.rawReasoning),
    citations: answer.citations?.map(wellFormedJson) ?? null,
    toolCalls: answer.toolCalls.map(wellFormedCall),
    finishReason: textOrNull(answer.finishReason),
  }
}

/** A name as its column holds it. */
export function storableName(name: string): string {
  return wellFormed(name.slice(0, wordLimit))
}

/** A provider's word as its column holds it; null for none. */
export function storableWord(word: string | null): string | null {
  return word === null ? null : storableName(word)
}

function wellFormedCall(call: AnswerToolCall): AnswerToolCall {
  return {
    providerCallId: textOrNull(call.providerCallId),
    name: wellFormed(call.name),
    argumentsText: wellFormed(call.argumentsText),
    arguments: call.arguments === null ? null : wellFormedJson(call.arguments),
    thoughtSignature: textOrNull(call.thoughtSignature),
  }
}

function textOrNull(text: string | null): string | null {
  return text === null ? null : wellFormed(text)
}

function wellFormedJson<Value extends Json>(value: Value): Value {
  return wellFormedValue(value) as Value
}

function wellFormedValue(value: Json): Json {
  if (typeof value === 'string') return wellFormed(value)
  if (Array.isArray(value)) return value.map(wellFormedValue)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [wellFormed(key), wellFormedValue(inner)]))
}
