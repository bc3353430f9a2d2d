import type { Claims } from '../src/claims/claims.ts'
import { CancelledError, ChatNotFoundError, ShutdownError } from '../src/errors.ts'
import type { Apart } from './apart.ts'
import type { ChatJob } from './job.ts'
import type { OnlyReport } from './own-process.ts'

/** There is nothing else in this process. */
const here: Apart = { run: (work) => work.here(), close() {} }

/** How a process does one job and nothing else. */
export interface OnlyOptions {
  readonly claims: Claims
  /** Aborted when the process is to end: the move may end first. */
  readonly stopping: AbortSignal
  /** For so long, in ms. */
  readonly graceMs: number
}

/**
 * Does one job in a process that does nothing else. Resolves to what it came to, `cancelled` included.
 * @throws whatever else ended the turn.
 */
export async function performOnly(
  job: ChatJob,
  chatId: string,
  { claims, stopping, graceMs }: OnlyOptions,
): Promise<OnlyReport['only']> {
  let grace: NodeJS.Timeout | undefined
  const end = () => {
    const reason = new ShutdownError('The process is shutting down: the chat goes to another worker.')
    grace = setTimeout(() => claims.abortAll(reason), graceMs)
  }
  if (stopping.aborted) return 'runs alone later'
  stopping.addEventListener('abort', end, { once: true })
  try {
    return await job.performApart(chatId, { stopping: () => stopping.aborted, apart: here, onProcess() {} })
  } catch (error) {
    if (error instanceof ChatNotFoundError) return 'not wanted'
    if (error instanceof CancelledError) return 'cancelled'
    throw error
  } finally {
    stopping.removeEventListener('abort', end)
    clearTimeout(grace)
  }
}
