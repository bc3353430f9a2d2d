import type { AttachmentValue } from '../../models/attachment-value.ts'
import { announceBlobs, purgeBlob } from '../../models/blobs.ts'
import type { Database } from '../../models/database.ts'
import { errorFacts } from '../observability/error-facts.ts'
import type { Instruments } from '../observability/instruments.ts'
import type { AttachmentLimits, LoadedAttachment } from './source.ts'
import type { BlobStore } from './store.ts'

/** What files are kept with. */
export interface FileDependencies {
  readonly db: Database
  /** Where files are kept, and what may be attached. */
  readonly files: AttachmentLimits & { readonly store: BlobStore }
  readonly ports: Pick<Instruments, 'observe'>
}

/** Stores bytes that no message holds yet, and makes them known before, so that none are forgotten. */
export async function storeFiles(deps: FileDependencies, loaded: readonly LoadedAttachment[]): Promise<void> {
  const attachments = loaded.map(({ value }) => value)
  await deps.db.transaction((transaction) => announceBlobs(deps.db, attachments, transaction))
  await keepBytes(deps, loaded)
}

/** Makes sure that bytes are there. */
export async function keepBytes(
  { files: { store } }: Pick<FileDependencies, 'files'>,
  loaded: readonly LoadedAttachment[],
): Promise<void> {
  for (const { value, bytes } of loaded) {
    if (!(await store.has(value.digest))) await store.put(value.digest, bytes)
  }
}

/** Deletes what nobody holds any more. What can't be deleted now is left to `mill.purgeAttachments()`. (S54, E62) */
export async function purgeFiles(
  { db, files, ports }: FileDependencies,
  attachments: readonly Pick<AttachmentValue, 'digest'>[],
): Promise<void> {
  for (const digest of new Set(attachments.map((attachment) => attachment.digest))) {
    try {
      await purgeBlob(db, digest, (one) => files.store.delete(one))
    } catch (error) {
      const { name, code } = errorFacts(error)
      ports.observe({ type: 'notice', message: `The file ${digest} stays in the store for now: ${name} (${code}).` })
    }
  }
}
