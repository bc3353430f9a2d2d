import { randomUUID } from 'node:crypto'
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Where the bytes of attachments are kept, by their digest: on disk, in S3, or wherever the application's own puts them. `put`, `has` and
 * `delete` are called while a transaction is open, so they should be quick, and must not write to the database of the chats.
 */
export interface BlobStore {
  /** Stores bytes. Called again for what is there already: it must end with the bytes there. */
  put(digest: string, bytes: Uint8Array): Promise<void>
  /** The bytes; null where there are none. */
  get(digest: string): Promise<Uint8Array | null>
  /** Whether they are there. */
  has(digest: string): Promise<boolean>
  /** Removes them; nothing happens where there are none. */
  delete(digest: string): Promise<void>
}

/** Keeps each file under its digest in a folder that all processes share. A file is whole or not there. */
export function diskStore(folder: string): BlobStore {
  const pathOf = (digest: string) => join(folder, digest.slice(0, 2), digest)
  return {
    async put(digest, bytes) {
      const path = pathOf(digest)
      await mkdir(join(folder, digest.slice(0, 2)), { recursive: true })
      const unfinished = `${path}.${randomUUID()}`
      await writeFile(unfinished, bytes)
      await rename(unfinished, path)
    },
    async get(digest) {
      try {
        return await readFile(pathOf(digest))
      } catch (error) {
        if ((error as { code?: unknown }).code === 'ENOENT') return null
        throw error
      }
    },
    has: (digest) =>
      stat(pathOf(digest)).then(
        () => true,
        () => false,
      ),
    delete: (digest) => rm(pathOf(digest), { force: true }),
  }
}
