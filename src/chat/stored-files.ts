import type { Transaction } from 'sequelize'
import type { AttachmentValue } from '../../models/attachment-value.ts'
import { type FileDependencies, keepBytes, purgeFiles, storeFiles } from '../attachments/keeping.ts'
import { type AttachmentSource, loadAttachments } from '../attachments/source.ts'

/** What goes with a message. */
export interface WithAttachments {
  /** Files: paths, URLs, bytes, streams, files of other messages; stored before the message is. Blank entries are left out. */
  readonly attachments?: AttachmentSource | readonly AttachmentSource[] | undefined
}

/** Files whose bytes are stored, and that no message holds yet. */
export interface StoredFiles {
  /** Null where there are none. */
  readonly attachments: AttachmentValue[] | null
  /**
   * Makes sure that the bytes are still there. To be called in the transaction that holds them, where nobody can delete them: whoever let
   * go of the last message with the same file may have done so until then. (E61)
   */
  readonly keep: () => Promise<void>
}

const noFiles: StoredFiles = { attachments: null, keep: async () => {} }

/**
 * Stores files, then has a message stored that holds them. The bytes come first, so that nobody sees a message without its file; if the
 * message can't be stored, they are removed again. (B88, E62)
 * @param join the application's transaction, in which the message is stored. Bytes stay then if it is rolled back.
 */
export async function withStoredFiles<T>(
  deps: FileDependencies,
  sources: WithAttachments['attachments'],
  join: Transaction | undefined,
  store: (files: StoredFiles) => Promise<T>,
): Promise<T> {
  if (sources === undefined) return store(noFiles)
  const loaded = await loadAttachments(sources, deps.files)
  if (loaded.length === 0) return store(noFiles)
  const attachments = loaded.map(({ value }) => value)
  try {
    // What a transaction of the application's announced would be gone with it, and SQLite has no other beside it.
    if (join === undefined) await storeFiles(deps, loaded)
    else await keepBytes(deps, loaded)
    return await store({ attachments, keep: () => keepBytes(deps, loaded) })
  } catch (error) {
    // Within a transaction of the application's, their rows may be locked by it.
    if (join === undefined) await purgeFiles(deps, attachments)
    throw error
  }
}
