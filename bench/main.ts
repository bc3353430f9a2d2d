import Table from 'cli-table3'
import { Command, InvalidArgumentError } from 'commander'
import { bare } from './bare.ts'
import type { Contestant } from './contestant.ts'
import { type Figures, measure, median } from './measure.ts'
import { startServices } from './services.ts'
import { otherProcess, sameProcess } from './threadmill.ts'
import { type Workload, workloads } from './workloads.ts'

// Times what a turn costs beside the bare client, on one machine, in interleaved rounds: only ratios mean anything.

const contestants: readonly Contestant[] = [bare, sameProcess, otherProcess]

const whole = (text: string): number => {
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError('must be a whole number from 1 on')
  return Number(text)
}

const program = new Command('bench')
  .description('Times turns beside the bare OpenAI client. On SQLite, or on the server that --database-url names.')
  .option('--rounds <count>', 'how often each workload runs', whole, 5)
  .option('--only <names>', `workloads, separated by commas: ${workloads.map(({ name }) => name).join(', ')}`)
  .option(
    '--database-url <url>',
    'a MySQL or MariaDB server where a database can be made',
    process.env.TEST_DATABASE_URL,
  )
  .option('--json', 'print every figure as JSON')
const { rounds, only, databaseUrl, json } = program
  .parse()
  .opts<{ rounds: number; only?: string; databaseUrl?: string; json?: boolean }>()

const chosen = workloads.filter(({ name }) => only === undefined || only.split(',').includes(name))
const figures = new Map<string, Figures[]>()
const keyOf = (workload: Workload, contestant: Contestant) => `${workload.name}, ${contestant.name}`

async function main(): Promise<void> {
  const services = await startServices(databaseUrl)
  try {
    for (let round = 1; round <= rounds; round++) {
      for (const workload of chosen) {
        const arena = { ...services, modelUrl: services.modelUrl(workload.latencyMs, workload.chunks) }
        for (const contestant of contestants) {
          const measured = await measure(contestant, workload, arena, services.counters)
          const key = keyOf(workload, contestant)
          figures.set(key, [...(figures.get(key) ?? []), measured])
        }
      }
      process.stderr.write(`round ${round} of ${rounds}\n`)
    }
  } finally {
    await services.close()
  }
  process.stdout.write(`${json ? JSON.stringify(Object.fromEntries(figures), null, 2) : report()}\n`)
}

function report(): string {
  const table = new Table({
    head: ['workload', 'turns/s', 'share', 'p50 ms', 'p99 ms', 'CPU ms', 'SQL', 'SQL bytes', 'rows read'],
    style: { head: [], border: [] },
  })
  for (const workload of chosen) {
    const floor = figures.get(keyOf(workload, bare)) ?? []
    for (const contestant of contestants) {
      const measured = figures.get(keyOf(workload, contestant)) ?? []
      const of = (read: (figures: Figures) => number, digits: number) => median(measured.map(read)).toFixed(digits)
      // Of the same round each: the machine's mood is the same for both.
      const shares = measured.map(
        ({ turnsPerSecond }, at) => turnsPerSecond / (floor[at]?.turnsPerSecond ?? Number.NaN),
      )
      table.push([
        keyOf(workload, contestant),
        of((round) => round.turnsPerSecond, 1),
        median(shares).toFixed(2),
        of((round) => round.p50Ms, 1),
        of((round) => round.p99Ms, 1),
        of((round) => round.cpuMsPerTurn, 2),
        of((round) => round.database?.statements ?? Number.NaN, 1),
        of((round) => round.database?.bytesReceived ?? Number.NaN, 0),
        of((round) => round.database?.rowsRead ?? Number.NaN, 0),
      ])
    }
  }
  return table.toString()
}

void main()
