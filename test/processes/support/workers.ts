import { fileURLToPath } from 'node:url'
import type { ConnectOptions, WorkerCounts } from '../../../src/index.ts'
import { useWorkerProcesses, type WorkerProcess } from '../../support/worker-processes.ts'

export type { WorkerProcess }

/** A process dies by SIGKILL at the last of these statements, once the others came before it, in this order. */
export type DeathAt = readonly RegExp[]

export interface WorkerStart {
  /** An app of `test/processes/apps`, without its ending. */
  readonly app: string
  readonly options: ConnectOptions & { readonly counts?: WorkerCounts; readonly isolates?: boolean }
  /** The address of the test's desk, for tools. */
  readonly desk?: string
  readonly dieAt?: DeathAt
  /** It freezes before the last of these, until SIGCONT, and says FROZEN on its output. */
  readonly freezeAt?: DeathAt
}

/** The statements of a run that tests let processes die at. */
export const statements = {
  startsCall: /^UPDATE \S*tool_calls\S* SET claimed_by/,
  linksResult: /^UPDATE \S*tool_calls\S* SET result_id/,
  insertsMessage: /^INSERT INTO \S*messages/,
  fences: /^UPDATE \S*chats\S* SET next_position/,
  begins: /^(BEGIN|START TRANSACTION)/,
  commits: /^COMMIT/,
  takes: /^UPDATE \S*chats\S* SET deaths = .*, claimed_by = (?!NULL)/,
  releases: /^UPDATE \S*chats\S* SET claimed_by = NULL/,
  leavesQueue: /^DELETE FROM \S*queued_messages/,
  notesDelivery: /^INSERT INTO \S*receipts/,
  settles: /^UPDATE \S*chats\S* SET next_position.*cancelled_turn = turn/s,
  any: /./,
}

/** Processes that are left are ended after each test. */
export function useWorkers(): { start(start: WorkerStart): Promise<WorkerProcess> } {
  const processes = useWorkerProcesses()
  return {
    start: ({ app, options, desk, dieAt, freezeAt }) =>
      processes.start(fileURLToPath(new URL(`../apps/${app}.ts`, import.meta.url)), options, {
        ...(desk === undefined ? {} : { THREADMILL_TEST_DESK: desk }),
        ...(dieAt === undefined ? {} : { THREADMILL_TEST_DIE_AT: sourcesOf(dieAt) }),
        ...(freezeAt === undefined ? {} : { THREADMILL_TEST_FREEZE_AT: sourcesOf(freezeAt) }),
      }),
  }
}

const sourcesOf = (patterns: DeathAt) => JSON.stringify(patterns.map(({ source }) => source))

/** Ends a worker as a crash would, and resolves when it is gone. */
export async function kill(worker: WorkerProcess): Promise<void> {
  worker.signal('SIGKILL')
  await worker.ended
}
