import type { Json, TranscriptMessage } from '../../models/rows.ts'
import { type Attachment, withOpenFiles } from '../attachments/attachment.ts'
import type { BlobStore } from '../attachments/store.ts'

/** One message of a transcript, with the calls that it requested. */
export interface Message extends Omit<TranscriptMessage, 'attachments'> {
  /** Its files, in their order; `await attachment.bytes()` reads one. Null where it has none. */
  readonly attachments: Attachment[] | null
  /** What its text says as JSON, as answers to a schema do; null where it is no JSON. Read anew each time. */
  readonly parsed: Json | null
}

/** A message as an application gets it. `parsed` is no part of what is copied or compared. */
export function asMessage(stored: TranscriptMessage, store: BlobStore): Message {
  const message = withOpenFiles(stored, store)
  Object.defineProperty(message, 'parsed', { configurable: true, get: () => parsedOf(message.content) })
  return message as unknown as Message
}

export function parsedOf(text: string | null): Json | null {
  try {
    return JSON.parse(text ?? '') as Json
  } catch {
    return null
  }
}
