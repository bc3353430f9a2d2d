import Table from 'cli-table3'
import { Command, InvalidArgumentError } from 'commander'
import { type Found, simulated } from './detect.ts'
import { type Sabotage, sabotages } from './sabotages.ts'
import { Scratch } from './scratch.ts'

// npm run sabotage -- --only fence --starts 5

interface Options {
  readonly only?: string
  readonly starts: number
  readonly seeds: number
  readonly seed: number
  readonly markdown: boolean
}

/** Seeds that have to go well before anything is spoilt, or what is found would say nothing. */
const unspoiltSeeds = 100
/** How far the starts lie apart. */
const apart = 100_000

const options = new Command('sabotage')
  .description('Makes each of ten mistakes in a copy of the code, and sees whether the simulator finds it.')
  .option('--only <name>', `one of ${Object.keys(sabotages).join(', ')}`, nameOf)
  .option('--starts <number>', 'how often each is looked for, from other seeds on', countOf, 1)
  .option('--seeds <number>', 'within how many seeds it has to be found each time', countOf, 2_000)
  .option('--seed <number>', 'the first seed', countOf, 1)
  .option('--markdown', 'print the table in Markdown', false)
  .parse()
  .opts<Options>()

const say = (text: string) => process.stdout.write(`${text}\n`)
const chosen = Object.entries(sabotages).filter(([name]) => options.only === undefined || options.only === name)
const scratch = new Scratch()
process.once('SIGINT', () => {
  scratch.remove()
  process.exit(130)
})
try {
  const unspoilt = await simulated(scratch.folder, options.seed, unspoiltSeeds)
  if (unspoilt.after !== null) throw new Error(`without any sabotage the simulator finds: ${unspoilt.violation}`)
  const rows: (readonly string[])[] = []
  for (const [name, sabotage] of chosen) {
    const found = await lookFor(sabotage)
    if (found.some(({ after }) => after === null)) process.exitCode = 1
    rows.push([name, sabotage.what, seedsOf(found), secondsOf(found), found[0]?.violation ?? ''])
    say(`${name}: ${process.exitCode === 1 ? 'SURVIVES' : 'found'} (${seedsOf(found)})`)
  }
  say(tableOf(['name', 'sabotage', 'seeds until found', 'seconds', 'what was wrong first'], rows))
} finally {
  scratch.remove()
}

function lookFor({ edits }: Sabotage): Promise<Found[]> {
  return scratch.spoilt(edits, async () => {
    const found: Found[] = []
    for (let start = 0; start < options.starts; start++) {
      found.push(await simulated(scratch.folder, options.seed + start * apart, options.seeds))
    }
    return found
  })
}

function seedsOf(found: readonly Found[]): string {
  return found.map(({ after }) => after ?? `none of ${options.seeds}`).join(', ')
}

function secondsOf(found: readonly Found[]): string {
  return found.map(({ ms }) => (ms / 1_000).toFixed(0)).join(', ')
}

function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (options.markdown) {
    return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
  }
  const table = new Table({ head: [...head], colWidths: [15, 30, 20, 16, 50], wordWrap: true, style: { head: [] } })
  for (const row of rows) table.push([...row])
  return table.toString()
}

function nameOf(text: string): string {
  if (text in sabotages) return text
  throw new InvalidArgumentError(`There are ${Object.keys(sabotages).join(', ')}.`)
}

function countOf(text: string): number {
  const count = Number(text)
  if (!Number.isSafeInteger(count) || count < 1) throw new InvalidArgumentError('It must be a whole number from 1 on.')
  return count
}
