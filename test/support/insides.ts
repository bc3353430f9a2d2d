import type { Threadmill } from '../../src/index.ts'
import type { RowsPort } from '../../src/loop/ports.ts'
import type { JobDependencies } from '../../workers/job.ts'

/** What a connection is made of, for tests that stand between two of its statements. */
export function insidesOf(mill: Threadmill): JobDependencies {
  return Reflect.get(mill.jobs.complete, 'dependencies') as JobDependencies
}

/** Runs `act` once: before the first call of a statement that the loop makes from now on. */
export function beforeNext(mill: Threadmill, name: keyof RowsPort, act: () => Promise<unknown>): void {
  let done = false
  const { rows } = insidesOf(mill).ports
  const call = rows[name] as (...input: unknown[]) => Promise<unknown>
  const wrapped = async (...input: unknown[]) => {
    if (!done) {
      done = true
      await act()
    }
    return call(...input)
  }
  Object.assign(rows, { [name]: wrapped })
}
