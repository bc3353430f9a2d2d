import { chmod, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command, InvalidArgumentError, Option } from 'commander'
import { startJanitor } from './janitor.ts'
import { tooFew } from './minima.ts'
import { runPart } from './part.ts'
import type { DatabaseName } from './plan.ts'
import { summaryOf, tableOf, together } from './report.ts'
import { tellStory } from './story.ts'
import { violationsOf } from './violations.ts'

// npm run chaos -- --minutes 15 --seed 1

const say = (text: string) => process.stdout.write(`${text}\n`)

interface Options {
  readonly minutes: number
  readonly seed: number
  readonly workers: number
  readonly chats: number
  readonly markdown?: boolean
  readonly database?: DatabaseName
}

const { minutes, seed, workers, chats, database, markdown } = new Command('chaos')
  .description('Workers, people and a model on real parts, of which things go wrong; then every guarantee is checked.')
  .option('--minutes <number>', 'how long things go wrong', positive, 3)
  .option('--seed <number>', 'what goes wrong, and when', whole, 1)
  .option('--workers <number>', 'worker processes at a time', whole, 4)
  .option('--chats <number>', 'chats that are talked to at a time', whole, 24)
  .addOption(
    new Option('--database <name>', 'all of the time on this one; else a fifth is on SQLite').choices([
      'sqlite',
      'mysql',
    ]),
  )
  .option('--markdown', 'print the table as Markdown')
  .parse()
  .opts<Options>()

// Sequelize writes there of every connection that dies at a COMMIT, as they do here.
Reflect.set(console, 'warn', () => {})

const mostViolations = 50
const mostStories = 3
const shares = { mysql: 0.8, sqlite: 0.2 } as const

const folder = await mkdtemp(join(tmpdir(), 'threadmill-chaos-'))
// The database may run as another user.
await chmod(folder, 0o711)
const janitor = startJanitor(folder)
const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop.abort())
try {
  await run()
} catch (error) {
  if (!stop.signal.aborted) throw error
  say('Stopped before it was over.')
  process.exitCode = 1
} finally {
  await janitor.finish()
}
// What was under way when it was stopped is not waited for.
if (stop.signal.aborted) process.exit()

async function run(): Promise<void> {
  const parts: DatabaseName[] = database === undefined ? ['mysql', 'sqlite'] : [database]
  const summaries = []
  for (const part of parts) {
    const ms = minutes * 60_000 * (database === undefined ? shares[part] : 1)
    const result = await runPart({
      ...{ database: part, ms, seed, chats, folder: join(folder, part), janitor, say, signal: stop.signal },
      workers: part === 'sqlite' ? Math.min(workers, 3) : workers,
    })
    const violations = [...result.violations, ...violationsOf(result.evidence)]
    for (const { row } of result.evidence.chats) {
      if (row.failure !== null) say(`${part}: chat ${row.id} failed, ${row.failure.code}: ${row.failure.message}`)
    }
    summaries.push(summaryOf(result, violations))
    if (violations.length === 0) continue
    say(`\n${part}: ${violations.length} violations`)
    for (const { rule, chatId, what } of violations.slice(0, mostViolations)) say(`- ${rule}, chat ${chatId}: ${what}`)
    const known = new Set(result.evidence.chats.map(({ row }) => row.id))
    const concerned = [...new Set(violations.flatMap(({ chatId }) => chatId ?? []))].filter((id) => known.has(id))
    for (const chatId of concerned.slice(0, mostStories)) say(`\n${tellStory(result.evidence, chatId)}`)
  }
  const all = together(summaries)
  const few = tooFew(
    {
      ...{ turns: all.turns, approvals: all.approvals, cancels: all.cancels, kill: all.injected.get('kill') ?? 0 },
      freeze: all.injected.get('freeze') ?? 0,
      'restart-redis': all.injected.get('restart-redis') ?? 0,
      'restart-database': all.injected.get('restart-database') ?? 0,
    },
    minutes,
    parts.includes('mysql'),
  )
  say(`\n${tableOf(summaries.length > 1 ? [...summaries, all] : summaries, markdown === true)}\n`)
  for (const line of few) say(`Too few ${line}.`)
  if (all.violations.length === 0 && few.length === 0) {
    say(`Nothing was lost or doubled in ${minutes} minutes of seed ${seed}.`)
    return
  }
  if (all.violations.length > 0) say(`${all.violations.length} violations in ${minutes} minutes of seed ${seed}.`)
  process.exitCode = 1
}

function positive(text: string): number {
  const number = Number(text)
  if (!(number > 0 && number <= 600)) throw new InvalidArgumentError('It must be a number above 0, and 600 at most.')
  return number
}

function whole(text: string): number {
  const number = Number(text)
  if (!Number.isSafeInteger(number) || number < 1)
    throw new InvalidArgumentError('It must be a whole number from 1 on.')
  return number
}
