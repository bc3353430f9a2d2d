import type { BlobStore } from './store.ts'

const rememberedBytes = 64 * 1024 * 1024
/** What remembering a file takes beside its bytes, about: a million tiny ones are not for nothing. */
const bytesBeside = 512

/**
 * A store whose files are read once in a process, as far as memory is meant for that: each request of a chat carries all of its files. (E63)
 * Whether a file is there is always asked.
 */
export function rememberingStore(store: BlobStore, maxBytes = rememberedBytes): BlobStore {
  let opened: ReturnType<typeof open> | undefined
  const open = async () => {
    const { LRUCache } = await import('lru-cache')
    const sizeCalculation = (bytes: Uint8Array) => bytes.byteLength + bytesBeside
    return new LRUCache<string, Uint8Array>({ maxSize: maxBytes, sizeCalculation })
  }
  const remembered = () => {
    opened ??= open()
    return opened
  }
  return {
    put: (digest, bytes) => store.put(digest, bytes),
    has: (digest) => store.has(digest),
    async get(digest) {
      const cache = await remembered()
      const known = cache.get(digest)
      if (known !== undefined) return known
      const bytes = await store.get(digest)
      if (bytes !== null) cache.set(digest, bytes)
      return bytes
    },
    async delete(digest) {
      const cache = await remembered()
      cache.delete(digest)
      await store.delete(digest)
    },
  }
}
