import { join } from 'node:path'
import * as z from 'zod'
import { ConfigurationError } from '../errors.ts'
import { rememberingStore } from './remembering-store.ts'
import type { AttachmentLimits } from './source.ts'
import { type BlobStore, diskStore } from './store.ts'

/** Where the files of messages are kept, and which may be attached. */
export interface AttachmentsOptions {
  /**
   * Where bytes are kept; all processes need the same. Default: the folder `blobs` of the data directory, which is for one machine.
   */
  readonly store?: BlobStore | undefined
  /** Hosts that files may be fetched from, with a port where it is not the usual one. Default: none. */
  readonly allowHosts?: readonly string[] | undefined
  /** Bytes of one file at most. Default 20 MiB. */
  readonly maxBytes?: number | undefined
}

const methods = ['put', 'get', 'has', 'delete'] as const
const schema = z.strictObject({
  store: z
    .custom<BlobStore>(
      (value) => methods.every((name) => typeof (value as Record<string, unknown> | null)?.[name] === 'function'),
      'must have put, get, has and delete',
    )
    .optional(),
  allowHosts: z.array(z.string().min(1)).default([]),
  maxBytes: z
    .int()
    .min(1)
    .default(20 * 1024 * 1024),
})

/** @throws {ConfigurationError} for options that there are not. */
export function filesOf(
  options: AttachmentsOptions | undefined,
  dataDir: string,
): AttachmentLimits & { readonly store: BlobStore } {
  const parsed = schema.safeParse(options ?? {})
  if (!parsed.success) {
    const problems = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'attachments'}: ${issue.message}`)
    throw new ConfigurationError(`connect({ attachments }) can't be used. ${problems.join('; ')}`)
  }
  return { ...parsed.data, store: rememberingStore(parsed.data.store ?? diskStore(join(dataDir, 'blobs'))) }
}
