import type { LRUCache } from 'lru-cache'
import type { AttachmentValue } from '../../models/attachment-value.ts'
import { UnsupportedAttachmentError } from '../errors.ts'
import type { RequestAttachment } from '../providers/provider.ts'
import { Attachment } from './attachment.ts'
import type { BlobStore } from './store.ts'

/** What stands in for a file that a model can't take: a text, or another file. */
export type Converted =
  | string
  | {
      /** What it is called. */
      readonly filename: string
      /** Its media type. */
      readonly contentType: string
      /** Its bytes. */
      readonly data: Uint8Array
    }

/** Makes something of a file that a model can't take; null or undefined = not by this. */
export type AttachmentConverter = (
  attachment: Attachment,
) => Converted | null | undefined | Promise<Converted | null | undefined>

/** What each converter made of its last files, in this process: a file is converted once. */
const made = new WeakMap<AttachmentConverter, LRUCache<string, Promise<Converted | null | undefined>>>()
const remembered = 100

/**
 * The files of one message as a request carries them. What the model can't take goes through the converters in their order, the first
 * that makes something of it wins; the transcript keeps the file.
 * @throws {UnsupportedAttachmentError} for what nobody can convert. Nothing has been sent then.
 */
export async function requestAttachments(
  values: readonly AttachmentValue[],
  options: {
    readonly chatId: string
    readonly store: BlobStore
    readonly supports: (contentType: string) => boolean
    readonly converters: readonly AttachmentConverter[]
  },
): Promise<RequestAttachment[]> {
  const { chatId } = options
  return (await takenAttachments(values, options)).map((taken, at) => {
    if (taken !== null) return taken
    const { filename, contentType } = values[at] ?? {}
    throw new UnsupportedAttachmentError(
      `Chat ${chatId} holds ${filename} (${contentType}), which its model can't take: give the agent a convertUnsupportedAttachments, ` +
        'or ask a model that takes it.',
      { chatId },
    )
  })
}

/** The same, with null in the place of what nobody can convert. */
export async function takenAttachments(
  values: readonly AttachmentValue[],
  options: Omit<Parameters<typeof requestAttachments>[1], 'chatId'>,
): Promise<(RequestAttachment | null)[]> {
  return Promise.all(values.map((value) => requestAttachment(new Attachment(value, options.store), options)))
}

async function requestAttachment(
  attachment: Attachment,
  { supports, converters }: Parameters<typeof takenAttachments>[1],
): Promise<RequestAttachment | null> {
  const { filename, contentType } = attachment
  if (supports(contentType)) return { filename, contentType, base64: base64Of(await attachment.bytes()) }
  for (const converter of converters) {
    const converted = await once(converter, attachment)
    if (converted === null || converted === undefined) continue
    if (typeof converted === 'string') {
      return { filename, contentType: 'text/plain', base64: base64Of(Buffer.from(converted)) }
    }
    return { filename: converted.filename, contentType: converted.contentType, base64: base64Of(converted.data) }
  }
  return null
}

async function once(converter: AttachmentConverter, attachment: Attachment): Promise<Converted | null | undefined> {
  const { LRUCache } = await import('lru-cache')
  const known = made.get(converter) ?? new LRUCache<string, Promise<Converted | null | undefined>>({ max: remembered })
  made.set(converter, known)
  const converted = known.get(attachment.digest) ?? Promise.resolve(converter(attachment))
  known.set(attachment.digest, converted)
  // One that failed may succeed another time.
  converted.catch(() => known.delete(attachment.digest))
  return converted
}

function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}
