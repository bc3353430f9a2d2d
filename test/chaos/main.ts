import { chmod, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command, InvalidArgumentError, Option } from 'commander'
import { startJanitor } from './janitor.ts'
import { runPart } from './part.ts'
import type { DatabaseName } from './plan.ts'
import { violationsOf } from './violations.ts'

// npm run chaos -- --minutes 15 --seed 1

const say = (text: string) => process.stdout.write(`${text}\n`)

interface Options {
  readonly minutes: number
  readonly seed: number
  readonly workers: number
  readonly chats: number
  readonly database?: DatabaseName
}

const { minutes, seed, workers, chats, database } = new Command('chaos')
  .description('Workers, people and a model on real parts, of which things go wrong; then every guarantee is checked.')
  .option('--minutes <number>', 'how long things go wrong', positive, 3)
  .option('--seed <number>', 'what goes wrong, and when', whole, 1)
  .option('--workers <number>', 'worker processes at a time', whole, 4)
  .option('--chats <number>', 'chats that are talked to at a time', whole, 40)
  .addOption(new Option('--database <name>', 'only this one').choices(['sqlite', 'mysql']))
  .parse()
  .opts<Options>()

const folder = await mkdtemp(join(tmpdir(), 'threadmill-chaos-'))
// The database may run as another user.
await chmod(folder, 0o711)
const janitor = startJanitor(folder)
const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop.abort())
const share = { sqlite: 0.2, mysql: 0.8 }
const parts: DatabaseName[] = database === undefined ? ['mysql', 'sqlite'] : [database]
try {
  for (const part of parts) {
    const ms = minutes * 60_000 * (database === undefined ? share[part] : 1)
    const result = await runPart({
      ...{ database: part, ms, seed, chats, folder: join(folder, part), janitor, say, signal: stop.signal },
      workers: part === 'sqlite' ? Math.min(workers, 3) : workers,
    })
    const violations = [...result.violations, ...violationsOf(result.evidence)]
    say(JSON.stringify({ tally: [...result.tally.counts], model: [...result.model.injected] }))
    say(`${result.evidence.chats.reduce((sum, { row }) => sum + row.turn, 0)} turns`)
    for (const violation of violations.slice(0, 40)) say(JSON.stringify(violation))
    if (violations.length > 0) process.exitCode = 1
  }
} finally {
  await janitor.finish()
}

function positive(text: string): number {
  const number = Number(text)
  if (!(number > 0)) throw new InvalidArgumentError('It must be a number above 0.')
  return number
}

function whole(text: string): number {
  const number = Number(text)
  if (!Number.isSafeInteger(number) || number < 1)
    throw new InvalidArgumentError('It must be a whole number from 1 on.')
  return number
}
