import stringify from 'safe-stable-stringify'
import { parseArguments } from '../arguments.ts'
import type { AnswerToolCall } from '../provider.ts'
import type { ToolCallDelta } from './schema.ts'
import { WholeArguments } from './whole-arguments.ts'

interface OpenCall {
  readonly index: number | null
  id: string | null
  name: string
  argumentsText: string
  thoughtSignature: string | null
  readonly whole: WholeArguments
}

/** What a call counts for beside its texts: each becomes a row. */
const CALL_BYTES = 1024

/** Puts the tool calls of one answer together from whatever pieces a server sends. */
export class ToolCallAssembler {
  readonly #calls: OpenCall[] = []
  readonly #byIndex = new Map<number, OpenCall>()
  readonly #byId = new Map<string, OpenCall>()
  #keptBytes = 0

  /** What the calls take up so far, in bytes; each counts for 1 KiB beside its texts. */
  get keptBytes(): number {
    return this.#keptBytes
  }

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
    const seen = new Set<string>()
    return this.#ordered().flatMap((call) => {
      if (call.name === '') return []
      const answer = toAnswer(call)
      const key = answer.providerCallId === null ? null : meaningOf(answer)
      if (key === null) return [answer]
      if (seen.has(key)) return []
      seen.add(key)
      return [answer]
    })
  }

  #find(piece: ToolCallDelta): OpenCall | undefined {
    if (typeof piece.index === 'number') return this.#byIndex.get(piece.index)
    if (piece.id) return this.#byId.get(piece.id)
    return this.#calls.at(-1)
  }

  #open(piece: ToolCallDelta): OpenCall {
    const index = piece.index ?? null
    const whole = new WholeArguments()
    const call = { index, id: null, name: '', argumentsText: '', thoughtSignature: null, whole }
    this.#calls.push(call)
    if (index !== null) this.#byIndex.set(index, call)
    this.#keptBytes += CALL_BYTES
    return call
  }

  #extend(call: OpenCall, piece: ToolCallDelta): void {
    if (call.id === null && piece.id) {
      call.id = this.#kept(piece.id)
      this.#byId.set(piece.id, call)
    }
    call.name ||= this.#kept(piece.function?.name ?? '')
    const more = this.#kept(piece.function?.arguments ?? '')
    call.argumentsText += more
    call.whole.add(more)
    call.thoughtSignature ??= this.#kept(piece.extra_content?.google?.thought_signature ?? '') || null
  }

  #kept(text: string): string {
    this.#keptBytes += Buffer.byteLength(text)
    return text
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
    return piece.id !== call.id || bothWhole(call, piece)
  }
  if (!name || call.name === '') return false
  return name !== call.name || bothWhole(call, piece)
}

function bothWhole(call: OpenCall, piece: ToolCallDelta): boolean {
  const text = piece.function?.arguments ?? ''
  return call.whole.isWhole(call.argumentsText) && text.trimEnd().endsWith('}') && parseArguments(text) !== null
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

/** The same text for two calls that mean the same. */
function meaningOf({ providerCallId, name, arguments: parsed, argumentsText }: AnswerToolCall): string {
  return JSON.stringify([providerCallId, name, parsed === null ? argumentsText : null, stringify(parsed)])
}
