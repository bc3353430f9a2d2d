import { spawn } from 'node:child_process'

/** What a detector came to. */
export interface Found {
  /** Seeds that were played, the last of them the one that went wrong; null = it found nothing. */
  readonly after: number | null
  readonly ms: number
  /** The first thing that was wrong, in a line. */
  readonly violation: string
}

/** Longest time of one detector, in ms. */
const limitMs = 300_000

/**
 * Plays seeds from `first` on, with the real statements of that folder on SQLite.
 * @throws {Error} when the simulator itself fails.
 */
export async function simulated(folder: string, first: number, seeds: number): Promise<Found> {
  const begun = performance.now()
  const flags = ['--rows', 'sqlite', '--no-shrink', '--seed', String(first), '--seeds', String(seeds)]
  const { code, output } = await ran(folder, ['test/simulation/main.ts', ...flags])
  const ms = performance.now() - begun
  const [, seed, violation = ''] = /^seed (\d+): (.*)$/m.exec(output) ?? []
  if (seed !== undefined) return { after: Number(seed) - first + 1, ms, violation }
  if (code !== 0) throw new Error(`the simulator fails:\n${output}`)
  return { after: null, ms, violation: '' }
}

function ran(
  folder: string,
  args: readonly string[],
): Promise<{ readonly code: number | null; readonly output: string }> {
  const node = ['--conditions=threadmill-source', '--import', 'tsx', ...args]
  const child = spawn(process.execPath, node, { cwd: folder, timeout: limitMs, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  const keep = (chunk: Buffer) => {
    output += chunk.toString()
  }
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, output }))
  })
}
