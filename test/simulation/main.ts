import { Command, InvalidArgumentError, Option } from 'commander'
import { simulate } from './simulate.ts'
import { SqliteFile } from './sqlite-file.ts'

// npm run simulate -- --seeds 20000 --seed 1
// npm run simulate -- --seeds 1000 --seed 1 --rows sqlite

const say = (text: string) => process.stdout.write(`${text}\n`)

const {
  seeds,
  seed: first,
  rows,
  shrink,
} = new Command('simulate')
  .description('Runs the loop, its claims and its wake-ups in simulated worlds where things go wrong, a world a seed.')
  .option('--seeds <number>', 'how many worlds', countOf, 1_000)
  .option('--seed <number>', 'the first seed; the others follow it', countOf, 1)
  .addOption(
    new Option('--rows <where>', 'rows in memory, or the real statements on a SQLite database: each of them is a step')
      .choices(['memory', 'sqlite'])
      .default('memory'),
  )
  .option('--no-shrink', 'tell of what went wrong as it was drawn, at once')
  .parse()
  .opts<{ seeds: number; seed: number; rows: 'memory' | 'sqlite'; shrink: boolean }>()

const begun = performance.now()
const every = Math.max(1, Math.min(1_000, Math.ceil(seeds / 10)))
const file = rows === 'sqlite' ? await SqliteFile.create() : undefined
const failed = await simulate({
  seeds,
  first,
  file,
  shrinks: shrink,
  onPlayed: (seed) => {
    const done = seed - first + 1
    if (done % every === 0) say(`${done} of ${seeds} seeds, ${seconds()} s`)
  },
}).finally(() => file?.close())
if (failed === null) say(`${seeds} seeds from ${first} on: nothing went wrong that must not, in ${seconds()} s`)
else {
  say(failed.report)
  say(`\nAgain: npm run simulate -- --rows ${rows} --seeds 1 --seed ${failed.seed}`)
  process.exitCode = 1
}

function seconds(): string {
  return ((performance.now() - begun) / 1_000).toFixed(1)
}

function countOf(text: string): number {
  const count = Number(text)
  if (!Number.isSafeInteger(count) || count < 1) throw new InvalidArgumentError('It must be a whole number from 1 on.')
  return count
}
