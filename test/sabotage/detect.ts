import { spawn } from 'node:child_process'

/** What a detector came to. */
export interface Found {
  /** How much it took, as people read it; null = it found nothing. */
  readonly after: string | null
  readonly ms: number
  /** The first thing that was wrong, in a line. */
  readonly violation: string
}

/** Plays what is in a folder. @throws {Error} when the detector itself fails. */
export type Detector = (folder: string, seed: number) => Promise<Found>

/** Longest time of the simulator, in ms; that of the chaos run beyond its minutes. */
const limitMs = 600_000

/** Plays so many seeds, with the real statements of `models/` on SQLite. */
export function simulator(seeds: number): Detector {
  return async (folder, first) => {
    const flags = ['--rows', 'sqlite', '--no-shrink', '--seed', String(first), '--seeds', String(seeds)]
    const { output, ms } = await ran(folder, ['test/simulation/main.ts', ...flags], limitMs)
    const [, seed, violation = ''] = /^seed (\d+): (.*)$/m.exec(output) ?? []
    if (seed !== undefined) return { after: String(Number(seed) - first + 1), ms, violation }
    return nothing(output, ms, /nothing went wrong that must not/)
  }
}

/** Lets real processes and servers die for so many minutes. */
export function chaos(minutes: number): Detector {
  return async (folder, seed) => {
    const flags = ['--minutes', String(minutes), '--seed', String(seed)]
    const { output, ms } = await ran(folder, ['test/chaos/main.ts', ...flags], minutes * 60_000 + limitMs)
    const [, violations] = /^(\d+) violations in /m.exec(output) ?? []
    const [, violation = ''] = /^- (.*)$/m.exec(output) ?? []
    if (violations !== undefined) return { after: violations, ms, violation }
    return nothing(output, ms, /^Nothing was lost|^Too few/m)
  }
}

function nothing(output: string, ms: number, atItsEnd: RegExp): Found {
  if (!atItsEnd.test(output)) throw new Error(`The detector fails, or takes too long:\n${output}`)
  return { after: null, ms, violation: '' }
}

async function ran(
  folder: string,
  args: readonly string[],
  timeout: number,
): Promise<{ readonly output: string; readonly ms: number }> {
  const begun = performance.now()
  const node = ['--conditions=threadmill-source', '--import', 'tsx', ...args]
  const child = spawn(process.execPath, node, { cwd: folder, timeout, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  const keep = (chunk: Buffer) => {
    output += chunk.toString()
  }
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', () => resolve({ output, ms: performance.now() - begun }))
  })
}
