import { Command, InvalidArgumentError } from 'commander'
import { simulate } from './simulate.ts'

// npm run simulate -- --seeds 20000 --seed 1

const say = (text: string) => process.stdout.write(`${text}\n`)

const { seeds, seed: first } = new Command('simulate')
  .description('Runs the loop, its claims and its wake-ups in simulated worlds where things go wrong, a world a seed.')
  .option('--seeds <number>', 'how many worlds', countOf, 1_000)
  .option('--seed <number>', 'the first seed; the others follow it', countOf, 1)
  .parse()
  .opts<{ seeds: number; seed: number }>()

const begun = performance.now()
const every = Math.max(1, Math.min(1_000, Math.ceil(seeds / 10)))
const failed = await simulate({
  seeds,
  first,
  onPlayed: (seed) => {
    const done = seed - first + 1
    if (done % every === 0) say(`${done} of ${seeds} seeds, ${seconds()} s`)
  },
})
if (failed === null) say(`${seeds} seeds from ${first} on: nothing went wrong that must not, in ${seconds()} s`)
else {
  say(failed.report)
  say(`\nAgain: npm run simulate -- --seeds 1 --seed ${failed.seed}`)
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
