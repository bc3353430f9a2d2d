import { v4 as uuid } from 'uuid'
import { isPlainObject, requireKeys, shown } from './check.ts'
import { TextMessage } from './message.ts'

/** What goes with what a user says. */
export interface UserMessageOptions {
  /** The conversation that it belongs to. */
  readonly sessionId?: string | null | undefined
  /** Instructions for this message's own request. No part of the history. */
  readonly systemPrompt?: string | null | undefined
  /** Anything that the application wants to keep beside it. */
  readonly metadata?: Readonly<Record<string, unknown>> | null | undefined
  /** Default: a fresh UUID. */
  readonly id?: string | null | undefined
}

/** What a user says, with what goes with it: an envelope, which is no message itself. (M15) */
export class UserMessage {
  /** The text; never null. */
  readonly content: string
  /** The conversation that it belongs to; null where nobody said. */
  readonly sessionId: string | null
  /** Instructions for this message's own request; null where there are none. */
  readonly systemPrompt: string | null
  /** What the application keeps beside it; never null. */
  readonly metadata: Readonly<Record<string, unknown>>
  /** Which message it is. */
  readonly id: string
  /** When it was made. */
  readonly createdAt: Date

  /** @throws {InvalidMessageError} for options that there are not. */
  constructor(content: unknown, options: UserMessageOptions = {}) {
    requireKeys(options, [], ['sessionId', 'systemPrompt', 'metadata', 'id'], 'UserMessage')
    this.content = textOf(content)
    this.sessionId = options.sessionId ?? null
    this.systemPrompt = options.systemPrompt ?? null
    this.metadata = options.metadata ?? {}
    this.id = options.id ?? uuid()
    this.createdAt = new Date()
  }

  /** Anything as a user message: one as it is, a text, a plain object, the content of a text message, or what it is as text. */
  static from(given: unknown): UserMessage {
    if (given instanceof UserMessage) return given
    if (given instanceof TextMessage) return new UserMessage(given.content)
    if (!isPlainObject(given)) return new UserMessage(given)
    const { content, metadata, id } = given
    const sessionId = given.session_id ?? given.sessionId
    const systemPrompt = given.system_prompt ?? given.systemPrompt
    return new UserMessage(content, { sessionId, systemPrompt, metadata, id } as UserMessageOptions)
  }

  /** `content`, `session_id`, `system_prompt`, `metadata`, `id`, `created_at` (ISO 8601 in seconds, UTC), without those that are null. */
  toHash(): Readonly<Record<string, unknown>> {
    const { content, sessionId, systemPrompt, metadata, id, createdAt } = this
    return {
      content,
      ...(sessionId === null ? {} : { session_id: sessionId }),
      ...(systemPrompt === null ? {} : { system_prompt: systemPrompt }),
      metadata,
      id,
      created_at: createdAt.toISOString().replace(/\.\d+Z$/, 'Z'),
    }
  }

  /** The same, for `JSON.stringify`. */
  toJSON(): Readonly<Record<string, unknown>> {
    return this.toHash()
  }

  /** The text as a message; what goes with it is left out. */
  toMessage(): TextMessage {
    return new TextMessage({ role: 'user', content: this.content })
  }

  /** The text. */
  toString(): string {
    return this.content
  }
}

/** Never fails: what JSON can't hold is named by its kind. */
function textOf(content: unknown): string {
  if (content === null || content === undefined) return ''
  if (typeof content !== 'object' || content instanceof Date) return String(content)
  try {
    const json: string | undefined = JSON.stringify(content)
    return json ?? shown(content)
  } catch {
    return shown(content)
  }
}
