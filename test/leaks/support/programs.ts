import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { bundle } from '../../support/bundle.ts'
import type { Input } from './input.ts'

/** What a program reported, by name; where it did so more than once, the last. */
export type Reports = ReadonlyMap<string, unknown>

/** Programs that measure themselves, each in a process of its own: the memory of the test runner does not count. */
export function usePrograms(): {
  /**
   * Runs a program of `test/leaks/programs` to its end, which has to come by itself: nothing that it left open may keep it.
   * @param onReport told of each report as it comes.
   */
  run(name: string, input: Input, onReport?: (name: string) => void): Promise<Reports>
} {
  let children: ChildProcess[] = []
  before(async function () {
    this.timeout(60_000)
    await bundle()
  })
  afterEach(() => {
    for (const child of children) child.kill('SIGKILL')
    children = []
  })
  return {
    async run(name, input, onReport = () => {}) {
      const file = (await bundle()).program(`test/leaks/programs/${name}.ts`)
      const child = spawn(process.execPath, ['--expose-gc', '--disable-warning=ExperimentalWarning', file], {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, THREADMILL_TEST_INPUT: JSON.stringify(input) },
      })
      children.push(child)
      const reports = new Map<string, unknown>()
      let errors = ''
      child.stderr.on('data', (data: Buffer) => {
        errors = (errors + data.toString()).slice(-4_000)
      })
      createInterface(child.stdout).on('line', (line) => {
        const { name, value } = JSON.parse(line) as { name: string; value: unknown }
        reports.set(name, value)
        onReport(name)
      })
      const [code] = await once(child, 'close')
      if (code !== 0) throw new Error(`The program ${name} ended with ${code}: ${errors}`)
      return reports
    },
  }
}

/** What a program reported under a name. */
export function reported<T>(reports: Reports, name: string): T {
  if (!reports.has(name)) throw new Error(`The program reported no ${name}, but ${[...reports.keys()].join(', ')}`)
  return reports.get(name) as T
}
