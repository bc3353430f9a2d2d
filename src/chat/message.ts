import type { Json, TranscriptMessage } from '../../models/rows.ts'

/** One message of a transcript, with the calls that it requested. */
export interface Message extends TranscriptMessage {
  /** What its text says as JSON, as answers to a schema do; null where it is no JSON. Read anew each time. */
  readonly parsed: Json | null
}

/** A message as an application gets it. `parsed` is no part of what is copied or compared. */
export function asMessage(message: TranscriptMessage): Message {
  Object.defineProperty(message, 'parsed', { configurable: true, get: () => parsedOf(message.content) })
  return message as Message
}

export function parsedOf(text: string | null): Json | null {
  try {
    return JSON.parse(text ?? '') as Json
  } catch {
    return null
  }
}
