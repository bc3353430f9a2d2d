import Table from 'cli-table3'
import { Command, InvalidArgumentError, Option } from 'commander'
import { chaos, type Found, simulator } from './detect.ts'
import { sabotages } from './sabotages.ts'
import { Scratch } from './scratch.ts'

// npm run sabotage -- --only fence --starts 5

interface Options {
  readonly only?: string
  readonly by: 'simulator' | 'chaos'
  readonly starts: number
  readonly seeds: number
  readonly minutes: number
  readonly seed: number
  readonly markdown: boolean
}

/** How far the starts lie apart. */
const apart = 100_000
/** Seeds that have to go well before anything is spoilt, or what is found would say nothing. */
const unspoiltSeeds = 100

const options = new Command('sabotage')
  .description('Makes each of fourteen mistakes in a copy of the code, and sees whether it is found.')
  .option('--only <name>', `one of ${Object.keys(sabotages).join(', ')}`, nameOf)
  .addOption(
    new Option('--by <detector>', 'what has to find them').choices(['simulator', 'chaos']).default('simulator'),
  )
  .option('--starts <number>', 'how often each is looked for, from other seeds on', countOf, 1)
  .option('--seeds <number>', 'within how many seeds the simulator has to find it each time', countOf, 4_000)
  .option('--minutes <number>', 'within how many minutes the chaos run has to', countOf, 2)
  .option('--seed <number>', 'the first seed', countOf, 1)
  .option('--markdown', 'print the table in Markdown', false)
  .parse()
  .opts<Options>()

const say = (text: string) => process.stdout.write(`${text}\n`)
const detect = options.by === 'simulator' ? simulator(options.seeds) : chaos(options.minutes)
const chosen = Object.entries(sabotages).filter(([name]) => options.only === undefined || options.only === name)
const head = [
  ...['name', 'sabotage', options.by === 'simulator' ? 'seeds until found' : 'violations', 'seconds'],
  'what was wrong first',
]
const scratch = new Scratch()
process.once('SIGINT', () => {
  scratch.remove()
  process.exit(130)
})
try {
  await run()
} finally {
  scratch.remove()
}

async function run(): Promise<void> {
  const unspoilt = await simulator(unspoiltSeeds)(scratch.folder, options.seed)
  if (unspoilt.after !== null) throw new Error(`Without any sabotage the simulator finds: ${unspoilt.violation}`)
  const rows: (readonly string[])[] = []
  for (const [name, { what, edits }] of chosen) {
    const found = await scratch.spoilt(edits, lookFor)
    const survives = found.some(({ after }) => after === null)
    if (survives) process.exitCode = 1
    const afters = found.map(({ after }) => after ?? 'never').join(', ')
    const seconds = found.map(({ ms }) => (ms / 1_000).toFixed(0)).join(', ')
    const wrong = found.find(({ after }) => after !== null)?.violation ?? 'nothing'
    rows.push([name, what, afters, seconds, wrong])
    say(`${name}: ${survives ? 'SURVIVES' : 'found'} (${afters}): ${wrong}`)
  }
  say(`\n${tableOf(rows)}`)
}

async function lookFor(): Promise<Found[]> {
  const found: Found[] = []
  for (let start = 0; start < options.starts; start++) {
    found.push(await detect(scratch.folder, options.seed + start * apart))
  }
  return found
}

function tableOf(rows: readonly (readonly string[])[]): string {
  if (options.markdown) {
    return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
  }
  const table = new Table({ head, colWidths: [15, 30, 20, 16, 50], wordWrap: true, style: { head: [], border: [] } })
  for (const row of rows) table.push([...row])
  return table.toString()
}

function nameOf(text: string): string {
  if (Object.hasOwn(sabotages, text)) return text
  throw new InvalidArgumentError(`There are ${Object.keys(sabotages).join(', ')}.`)
}

function countOf(text: string): number {
  const count = Number(text)
  if (!Number.isSafeInteger(count) || count < 1) throw new InvalidArgumentError('It must be a whole number from 1 on.')
  return count
}
