import { createRequire } from 'node:module'
import type Native from 'libsql'

const load = createRequire(import.meta.url)

/**
 * Opens a file with libsql, which is loaded by the first call: on MySQL nobody waits for it, or needs a binary of it.
 * A lock that another connection holds is not waited for.
 */
export function openNative(file: string): Native.Database {
  const Database: typeof Native = load('libsql')
  return new Database(file, { timeout: 0 })
}
