import { isDeepStrictEqual } from 'node:util'
import { parseArguments } from '../arguments.ts'
import type { AnswerToolCall } from '../provider.ts'
import type { ToolCallDelta } from './schema.ts'

interface OpenCall {
  readonly index: number | null
  id: string | null
  name: string
  argumentsText: string
  thoughtSignature: string | null
}

/** Puts the tool calls of one answer together from whatever pieces a server sends. */
export class ToolCallAssembler {
  readonly #calls: OpenCall[] = []

  /** Takes a call of a JSON answer: it is whole, whatever its id and index say. */
  addWhole(call: ToolCallDelta): void {
    this.#extend(this.#open(call), call)
  }

  /**
   * Takes a piece of a streamed call. An index names its call; without one a new id opens a call and a piece without id
   * goes on with the call opened last. A piece that belongs to no call, and has neither id nor name, is dropped.
   */
  addPiece(piece: ToolCallDelta): void {
    const known = this.#find(piece)
    if (known && !startsAnother(known, piece)) this.#extend(known, piece)
    else if (piece.id || piece.function?.name) this.#extend(this.#open(piece), piece)
  }

  /** The calls in the model's order; a call sent twice under one id is one call, and a call without a name is none. */
  finish(): AnswerToolCall[] {
    const calls: AnswerToolCall[] = []
    for (const call of this.#ordered()) {
      if (call.name === '') continue
      const answer = toAnswer(call)
      if (!calls.some((earlier) => isSameCall(earlier, answer))) calls.push(answer)
    }
    return calls
  }

  #find(piece: ToolCallDelta): OpenCall | undefined {
    if (typeof piece.index === 'number') return this.#calls.findLast((call) => call.index === piece.index)
    if (piece.id) return this.#calls.findLast((call) => call.id === piece.id)
    return this.#calls.at(-1)
  }

  #open(piece: ToolCallDelta): OpenCall {
    const call = { index: piece.index ?? null, id: null, name: '', argumentsText: '', thoughtSignature: null }
    this.#calls.push(call)
    return call
  }

  #extend(call: OpenCall, piece: ToolCallDelta): void {
    call.id ??= piece.id || null
    call.name ||= piece.function?.name ?? ''
    call.argumentsText += piece.function?.arguments ?? ''
    call.thoughtSignature ??= piece.extra_content?.google?.thought_signature || null
  }

  #ordered(): OpenCall[] {
    if (this.#calls.some((call) => call.index === null)) return this.#calls
    return this.#calls.toSorted((a, b) => (a.index ?? 0) - (b.index ?? 0))
  }
}

/**
 * Whether a piece that seems to belong to a call begins another one: servers reuse index 0 for every call, leave ids
 * out, or send the same whole call twice.
 */
function startsAnother(call: OpenCall, piece: ToolCallDelta): boolean {
  const name = piece.function?.name
  if (piece.id && call.id) {
    return piece.id !== call.id || (isWhole(call.argumentsText) && isWhole(piece.function?.arguments))
  }
  if (!name || call.name === '') return false
  return name !== call.name || (isWhole(call.argumentsText) && isWhole(piece.function?.arguments))
}

function isWhole(text: string | null | undefined): boolean {
  return text?.trimEnd().endsWith('}') === true && parseArguments(text) !== null
}

function toAnswer(call: OpenCall): AnswerToolCall {
  return {
    providerCallId: call.id,
    name: call.name,
    argumentsText: call.argumentsText,
    arguments: parseArguments(call.argumentsText),
    thoughtSignature: call.thoughtSignature,
  }
}

function isSameCall(a: AnswerToolCall, b: AnswerToolCall): boolean {
  if (a.providerCallId === null || a.providerCallId !== b.providerCallId || a.name !== b.name) return false
  if (a.arguments === null) return a.argumentsText === b.argumentsText
  return isDeepStrictEqual(a.arguments, b.arguments)
}
