import type { AttachmentValue } from '../../models/attachment-value.ts'
import { type AttachmentSource, loadAttachments } from '../attachments/source.ts'
import type { ChatDependencies } from './chat-handle.ts'

/** What goes with a message. */
export interface WithAttachments {
  /** Files: paths, URLs, bytes, streams; stored before the message is. Blank entries are left out. */
  readonly attachments?: AttachmentSource | readonly AttachmentSource[] | undefined
}

/**
 * Stores files, then has a message stored that holds them. The bytes come first, so that nobody sees a message without its file; a
 * message that could not be stored leaves bytes that nobody holds, which is no harm. (B88)
 */
export async function withStoredFiles<T>(
  files: ChatDependencies['files'],
  sources: WithAttachments['attachments'],
  store: (attachments: AttachmentValue[] | null) => Promise<T>,
): Promise<T> {
  if (sources === undefined) return store(null)
  const loaded = await loadAttachments(sources, files)
  if (loaded.length === 0) return store(null)
  for (const { value, bytes } of loaded) await files.store.put(value.digest, bytes)
  const stored = await store(loaded.map(({ value }) => value))
  // Whoever let go of the last message with the same file may have deleted it in between.
  for (const { value, bytes } of loaded) {
    if (!(await files.store.has(value.digest))) await files.store.put(value.digest, bytes)
  }
  return stored
}
