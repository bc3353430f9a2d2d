import { isDeepStrictEqual } from 'node:util'
import { InvalidMessageError } from '../errors.ts'
import { isPlainObject, requireKeys, shown } from './check.ts'

/** A call as a plain object, as `toHash()` makes it. */
export interface ToolHash {
  /** Always `tool`. */
  readonly type: 'tool'
  /** The call's id. */
  readonly id: string | null
  /** The tool's name. */
  readonly name: string | null
  /** What is passed. */
  readonly input: unknown
}

/** What a {@link ToolMessage} is made of. */
export interface ToolMessageOptions {
  /** Unique among the calls of a chat; not checked here, but where it is stored or sent. */
  readonly id: string | null
  /** The tool's name. */
  readonly name: string | null
  /** What is passed; null = nothing. */
  readonly input: Record<string, unknown> | null
}

/** One requested tool call: a value of its own, which is no message. (M3, M4) */
export class ToolMessage {
  /** Which call it is. */
  readonly id: string | null
  /** The tool's name. */
  readonly name: string | null
  /** What is passed, kept as it was given; never null. */
  readonly input: Record<string, unknown>

  /** @throws {InvalidMessageError} where one of the three is missing, or there is more. */
  constructor(options: ToolMessageOptions) {
    requireKeys(options, ['id', 'name', 'input'], [], 'ToolMessage')
    this.id = options.id
    this.name = options.name
    this.input = options.input ?? {}
  }

  /** Reads a plain object: `id`, `name`, and `input`, or else `arguments`. Other keys are ignored. */
  static fromHash(hash: ToolHash | Readonly<Record<string, unknown>>): ToolMessage {
    if (!isPlainObject(hash)) throw new InvalidMessageError(`A tool call is an object, not ${shown(hash)}.`)
    const { id = null, name = null } = hash
    const input = hash.input ?? hash.arguments ?? {}
    return new ToolMessage({ id, name, input } as ToolMessageOptions)
  }

  /** A call as it is, or read from a plain object. @throws {InvalidMessageError} for anything else, naming `where`. */
  static of(given: unknown, where: string): ToolMessage {
    if (given instanceof ToolMessage) return given
    if (isPlainObject(given)) return ToolMessage.fromHash(given)
    throw new InvalidMessageError(`${where} must be a ToolMessage or an object, not ${shown(given)}.`)
  }

  /** Exactly `type`, `id`, `name`, `input`. */
  toHash(): ToolHash {
    return { type: 'tool', id: this.id, name: this.name, input: this.input }
  }

  /** The same, for `JSON.stringify`. */
  toJSON(): ToolHash {
    return this.toHash()
  }

  /** Whether the other is a call of the same id, name and input; the order of keys does not matter. */
  equals(other: unknown): boolean {
    return other instanceof ToolMessage && isDeepStrictEqual(this.toHash(), other.toHash())
  }
}
