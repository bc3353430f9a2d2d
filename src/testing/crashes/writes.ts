import type { CrashPoint, TurnWrite } from './report.ts'
import type { RecordedWrite, WriteKey } from './trap.ts'

/** A write of the turn, and how a process finds it again. */
export interface ListedWrite extends TurnWrite {
  readonly key: WriteKey
}

const idOf = ({ statement, occurrence }: WriteKey): string => `${occurrence} ${statement}`

/**
 * The writes of a turn: those that both of two runs made, in the order of the second. What an idle worker writes too, such as its
 * sweeps, is left out, and what only one run made, such as a second look after a ring that came twice.
 */
export function listWrites(
  first: readonly RecordedWrite[],
  second: readonly RecordedWrite[],
  idle: readonly RecordedWrite[],
): ListedWrite[] {
  const known = new Set(first.map(idOf))
  const background = new Set(idle.map(({ statement }) => statement))
  return second
    .filter((write) => known.has(idOf(write)) && !background.has(write.statement))
    .map(({ statement, occurrence, stores }, at) => ({
      number: at + 1,
      statement,
      stores,
      key: { statement, occurrence },
    }))
}

/**
 * The places to die at: before each write, and after each that stores something. After a write inside of a transaction nothing is stored,
 * and the process has done nothing since: that is the same as before the next one.
 */
export function pointsOf(writes: readonly ListedWrite[]): { readonly point: CrashPoint; readonly key: WriteKey }[] {
  return writes.flatMap(({ key, ...write }) => {
    const at = (moment: CrashPoint['moment']) => ({ point: { ...write, moment }, key })
    return write.stores ? [at('before'), at('after')] : [at('before')]
  })
}
