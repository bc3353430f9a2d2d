import { isDeepStrictEqual } from 'node:util'
import { InvalidMessageError } from '../errors.ts'
import {
  isPlainObject,
  type MessageRole,
  type MessageStop,
  type MessageType,
  messageRoles,
  messageTypes,
  oneOf,
  requireKeys,
  shown,
  stopReason,
} from './check.ts'
import { ToolMessage } from './tool-message.ts'

/** What a {@link Message} is made of. */
export interface MessageOptions {
  /** What kind of message it is. */
  readonly type: MessageType
  /** Whose message it is. */
  readonly role: MessageRole
  /** What it says; not checked. */
  readonly content: unknown
  /** Why it ends. Default: none. */
  readonly stopReason?: MessageStop | null | undefined
}

/** A message as a plain object, as `toHash()` makes it. */
export type MessageHash = Readonly<Record<string, unknown>>

/** What all messages have. Values: nothing of them changes, and what they were given is kept, not copied. */
export abstract class MessageValue {
  /** What kind of message it is. */
  readonly type: MessageType
  /** Whose message it is. */
  readonly role: MessageRole
  /** What it says; null for a message of tool calls. */
  readonly content: unknown
  /** Why it ends; null where nobody said. */
  readonly stopReason: MessageStop | null

  /** @throws {InvalidMessageError} for the first of type, role and stop reason that is not legal. */
  protected constructor(options: MessageOptions) {
    this.type = oneOf(messageTypes, options.type, 'type of a message')
    this.role = oneOf(messageRoles, options.role, 'role of a message')
    this.stopReason = stopReason(options.stopReason)
    this.content = options.content
  }

  /** Whether it says something itself. */
  text(): boolean {
    return this.type === 'text'
  }

  /** Whether it asks for tools. */
  toolCall(): boolean {
    return this.type === 'tool_call'
  }

  /** Whether it is the result of a tool: by its type, not its role. */
  toolResult(): boolean {
    return this.type === 'tool_result'
  }

  /** Whether it is an instruction. */
  system(): boolean {
    return this.role === 'system'
  }

  /** Whether it is the user's. */
  user(): boolean {
    return this.role === 'user'
  }

  /** Whether it is the model's. */
  assistant(): boolean {
    return this.role === 'assistant'
  }

  /** Whether the model had said all that it had to say. */
  stopped(): boolean {
    return this.stopReason === 'stop'
  }

  /** Whether it ends so that tools can run. */
  toolStop(): boolean {
    return this.stopReason === 'tool'
  }

  /** The message as a plain object, its keys in a fixed order. */
  abstract toHash(): MessageHash

  /** The same, for `JSON.stringify`. */
  toJSON(): MessageHash {
    return this.toHash()
  }

  /** Whether the other is of the same class and says the same; the order of keys does not matter. (M14) */
  equals(other: unknown): boolean {
    return (
      other instanceof MessageValue &&
      other.constructor === this.constructor &&
      isDeepStrictEqual(this.toHash(), other.toHash())
    )
  }

  /**
   * Reads a message of any kind from a plain object, whatever class this is called on; one without a type is a text. Other keys
   * are ignored. (M13)
   * @throws {InvalidMessageError} for an unknown type, or where a part is missing.
   */
  static fromHash(hash: MessageHash): TextMessage | ToolCallMessage | ToolResultMessage {
    if (!isPlainObject(hash)) throw new InvalidMessageError(`A message is an object, not ${shown(hash)}.`)
    const type = oneOf(messageTypes, hash.type ?? 'text', 'type of a message')
    switch (type) {
      case 'text':
        return new TextMessage(partsOf(hash, ['role', 'content']))
      case 'tool_call':
        return new ToolCallMessage(partsOf(hash, ['role', 'tools']))
      case 'tool_result':
        return new ToolResultMessage(partsOf({ content: null, ...hash }, ['tool', 'content']))
      default:
        return type satisfies never
    }
  }
}

/** A message that says something: an instruction, a question, an answer. (M9) */
export class TextMessage extends MessageValue {
  declare readonly type: 'text'

  /** @throws {InvalidMessageError} for a role or a stop reason that there is not, or where role or content is missing. */
  constructor(options: {
    readonly role: MessageRole
    readonly content: unknown
    readonly stopReason?: MessageStop | null | undefined
  }) {
    requireKeys(options, ['role', 'content'], ['stopReason'], 'TextMessage')
    super({ type: 'text', ...options })
  }

  /** `type`, `role`, `content`, `stop_reason`, without those that are null. */
  override toHash(): MessageHash {
    const { type, role, content, stopReason: stop } = this
    return {
      type,
      role,
      ...(content === null ? {} : { content }),
      ...(stop === null ? {} : { stop_reason: stop }),
    }
  }
}

/** What asks for tools: an answer of the model, its text apart. (M1, M2) */
export class ToolCallMessage extends MessageValue {
  declare readonly type: 'tool_call'
  declare readonly content: null
  /** The calls, in the model's order. */
  readonly tools: readonly ToolMessage[]

  /** @throws {InvalidMessageError} naming the place of a tool that is none, or a role or a stop reason that there is not. */
  constructor(options: {
    readonly role: MessageRole
    readonly tools: readonly (ToolMessage | Readonly<Record<string, unknown>>)[]
    readonly stopReason?: MessageStop | null | undefined
  }) {
    requireKeys(options, ['role', 'tools'], ['stopReason'], 'ToolCallMessage')
    if (!Array.isArray(options.tools)) {
      throw new InvalidMessageError(`The tools of a ToolCallMessage are a list, not ${shown(options.tools)}.`)
    }
    const tools = options.tools.map((tool, at) => ToolMessage.of(tool, `tools[${at}] of a ToolCallMessage`))
    super({ type: 'tool_call', role: options.role, content: null, stopReason: options.stopReason ?? 'tool' })
    this.tools = tools
  }

  /** Exactly `type`, `role`, `tools`, `stop_reason`. */
  override toHash(): MessageHash {
    const { type, role, tools, stopReason: stop } = this
    return { type, role, tools: tools.map((tool) => tool.toHash()), stop_reason: stop }
  }
}

/** The result of one call: by convention `{ data }` or `{ error }`. (M10, M11, M12) */
export class ToolResultMessage extends MessageValue {
  declare readonly type: 'tool_result'
  declare readonly role: 'tool_result'
  /** The call that it answers. */
  readonly tool: ToolMessage

  /** @throws {InvalidMessageError} for a tool that is none, or a stop reason that there is not. */
  constructor(options: {
    readonly tool: ToolMessage | Readonly<Record<string, unknown>>
    readonly content: unknown
    readonly stopReason?: MessageStop | null | undefined
  }) {
    requireKeys(options, ['tool', 'content'], ['stopReason'], 'ToolResultMessage')
    const tool = ToolMessage.of(options.tool, 'tool of a ToolResultMessage')
    super({
      type: 'tool_result',
      role: 'tool_result',
      content: options.content,
      stopReason: options.stopReason ?? 'tool',
    })
    this.tool = tool
  }

  /** Whether the call succeeded: the content has `data`, even null. */
  success(): boolean {
    return isPlainObject(this.content) && Object.hasOwn(this.content, 'data')
  }

  /** Whether the call failed: the content has `error`. */
  isError(): boolean {
    return isPlainObject(this.content) && Object.hasOwn(this.content, 'error')
  }

  /** What the tool returned; null where it did not succeed. */
  get data(): unknown {
    return this.success() ? (this.content as { data: unknown }).data : null
  }

  /** What went wrong; null where nothing did. */
  get error(): unknown {
    return this.isError() ? (this.content as { error: unknown }).error : null
  }

  /** Exactly `type`, `role`, `tool`, `content`, `stop_reason`, null or not. */
  override toHash(): MessageHash {
    const { type, role, tool, content, stopReason: stop } = this
    return { type, role, tool: tool.toHash(), content, stop_reason: stop }
  }
}

/** What a constructor takes of a plain object; it checks them itself. */
function partsOf(hash: MessageHash, keys: readonly string[]): never {
  const given = keys.map((key) => [key, hash[key]])
  return { ...Object.fromEntries(given), stopReason: hash.stop_reason } as never
}
