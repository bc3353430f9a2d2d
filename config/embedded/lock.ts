import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type Native from 'libsql'
import { UnreachableError } from '../../src/errors.ts'
import { openNative } from '../libsql.ts'

const WAIT_MS = 30_000

/**
 * Runs `work` while no other process, and nothing else in this one, runs any under the same data directory. The lock is
 * SQLite's own on an empty file: the system lets go of it when its process dies, so it can't be left behind.
 * Throws UnreachableError after 30 s of waiting.
 */
export async function exclusively<Result>(dataDir: string, work: () => Promise<Result>): Promise<Result> {
  const deadline = performance.now() + WAIT_MS
  const native = openNative(join(dataDir, 'redis.lock'))
  try {
    for (let tries = 0; !taken(native); tries++) {
      if (performance.now() > deadline) {
        throw new UnreachableError(
          `Another process has been starting the embedded Redis in ${dataDir} for ${WAIT_MS} ms: end it, or set REDIS_URL`,
        )
      }
      await wait(Math.min(5 + tries * 5, 50) * (0.5 + Math.random()))
    }
    return await work()
  } finally {
    native.close()
  }
}

function taken(native: Native.Database): boolean {
  try {
    native.exec('BEGIN EXCLUSIVE')
    return true
  } catch (error) {
    if (error instanceof Error && /locked|busy/i.test(error.message)) return false
    throw error
  }
}
