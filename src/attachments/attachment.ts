import * as z from 'zod'
import type { AttachmentValue } from '../../models/attachment-value.ts'
import { AttachmentError } from '../errors.ts'
import type { BlobStore } from './store.ts'

/** One file of a message. Its bytes are read when somebody asks for them. */
export class Attachment implements AttachmentValue {
  readonly id: string
  readonly filename: string
  readonly contentType: string
  readonly byteSize: number
  readonly digest: string
  readonly #store: BlobStore

  /** @internal */
  constructor(value: AttachmentValue, store: BlobStore) {
    this.id = value.id
    this.filename = value.filename
    this.contentType = value.contentType
    this.byteSize = value.byteSize
    this.digest = value.digest
    this.#store = store
  }

  /** Its bytes, the caller's own. @throws {AttachmentError} where the store has lost them. */
  async bytes(): Promise<Uint8Array> {
    const bytes = await this.#store.get(this.digest)
    if (bytes !== null) return new Uint8Array(bytes)
    throw new AttachmentError(
      `The bytes of ${this.filename} (${this.digest.slice(0, 12)}) are not in the store any more.`,
    )
  }
}

const stored = z.object({
  id: z.string(),
  filename: z.string(),
  contentType: z.string(),
  byteSize: z.int().min(0),
  // It becomes a path or a key.
  digest: z.string().regex(/^[0-9a-f]{64}$/),
})

/** @throws {AttachmentError} for what no row holds. */
export function openAttachment(value: AttachmentValue, store: BlobStore): Attachment {
  const parsed = stored.safeParse(value)
  if (parsed.success) return new Attachment(parsed.data, store)
  throw new AttachmentError("This is no file of a message: pass an entry of a record's attachments as it is.")
}

/** A message whose files can be read. */
export function withOpenFiles<M extends { attachments: AttachmentValue[] | null }>(message: M, store: BlobStore): M {
  if (message.attachments === null) return message
  return { ...message, attachments: message.attachments.map((value) => new Attachment(value, store)) }
}
