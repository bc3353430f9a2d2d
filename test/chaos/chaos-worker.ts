import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { Threadmill } from '../../src/index.ts'
import { withJournal } from '../../src/testing/crashes/journal.ts'
import { aroundStatements, type SentStatement } from '../../src/testing/crashes/statements.ts'
import { agents } from './agents.ts'
import { BoundaryWatch } from './boundary.ts'
import { type Blow, headers, type Order, type Report, type WorkerSetup } from './messages.ts'

// A worker process of a chaos run: takes orders on stdin, reports on stdout. It kills or stops itself where it is told to.

const beatMs = 100
/** A beat that is so late is told. */
const lateMs = 300
const unlimitedPages = 4_294_967_294

const { name, options, ledger } = JSON.parse(process.env.THREADMILL_CHAOS ?? '{}') as WorkerSetup
const boundaries = new BoundaryWatch()
let blow: Blow = { does: 'kill' }
/** Most pages of the file of SQLite; null = it was never limited. */
let pages: number | null = null
/** The claim of each chat that this process has taken. */
const tokens = new Map<string, number>()
/** What the statements of an open transaction had for values. */
const values = new WeakMap<object, string[]>()

/** At once, even if the process dies by the next line. */
function say(report: Report): void {
  writeSync(1, `${JSON.stringify(report)}\n`)
}

/** Nothing of this process goes on for so long. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

async function strike(texts: readonly string[]): Promise<void> {
  say({ kind: 'trapped', does: blow.does, texts })
  switch (blow.does) {
    case 'kill':
      process.kill(process.pid, 'SIGKILL')
      return standStill(10_000)
    case 'stop':
      process.kill(process.pid, 'SIGSTOP')
      // A signal to oneself may take a moment.
      return standStill(20)
    case 'hold':
      return wait(blow.ms)
    default:
      return blow satisfies never
  }
}

async function around(
  { sql, parameters, transaction, connection }: SentStatement,
  send: () => Promise<unknown>,
): Promise<unknown> {
  if (pages !== null) limitPages(connection, pages)
  const own = textsOf(parameters)
  const known = transaction === null ? own : [...(values.get(transaction) ?? []), ...own]
  if (transaction !== null) values.set(transaction, known)
  const moment = boundaries.pass(sql, transaction)
  if (moment === 'before') await strike(known)
  const result = await send()
  if (moment === 'after') await strike(known)
  return result
}

function textsOf(parameters: unknown): string[] {
  const list = Array.isArray(parameters) ? parameters : Object.values(parameters ?? {})
  return list.filter((value): value is string => typeof value === 'string' && value.length === 36)
}

/** SQLite's limit is one of the connection, and connections are many. */
function limitPages(connection: unknown, most: number): void {
  ;(connection as { run?(sql: string): unknown }).run?.(`PRAGMA max_page_count = ${most}`)
}

function watchBeat(): void {
  let last = Date.now()
  setInterval(() => {
    const ms = Date.now() - last - beatMs
    last = Date.now()
    if (ms > lateMs) say({ kind: 'stalled', ms })
  }, beatMs)
}

const mill = await Threadmill.connect({
  ...options,
  model: name,
  ...withJournal({ agents, tools: [] }, ledger),
  contextFor: ({ id }) => ({
    headers: { [headers.chat]: id, [headers.worker]: name, [headers.token]: String(tokens.get(id) ?? 0) },
  }),
  onObservation: (seen) => {
    if (seen.type === 'run.taken') {
      tokens.set(seen.chatId, seen.claimToken ?? 0)
      say({ kind: 'taken', chatId: seen.chatId, token: seen.claimToken ?? 0 })
    } else if (seen.type === 'job.started') {
      say({ kind: 'started', chatId: seen.chatId, job: seen.job })
    } else if (seen.type === 'run.ended') {
      say({ kind: 'ended', chatId: seen.chatId, token: seen.claimToken, outcome: seen.outcome })
    }
  },
})
aroundStatements(mill.sequelize, around)

async function obey(order: Order): Promise<void> {
  switch (order.kind) {
    case 'work':
      watchBeat()
      await mill.startWorkers({ complete: 12, runTools: 6, compact: 1 }).ready()
      return say({ kind: 'working' })
    case 'trap':
      blow = order.blow
      return boundaries.set(order.boundary)
    case 'spare':
      return boundaries.set(null)
    case 'disk':
      pages = order.isFull ? 1 : unlimitedPages
      return
    default:
      return order satisfies never
  }
}

process.on('uncaughtException', (error) => {
  say({ kind: 'broken', message: error.stack ?? String(error) })
  process.exit(1)
})
// Ctrl-C in a terminal reaches every process of the group; its parent ends it.
process.on('SIGINT', () => {})
const lines = createInterface({ input: process.stdin })
lines.on('line', (line) => void obey(JSON.parse(line) as Order))
// The parent is gone.
lines.on('close', () => process.exit(1))
say({ kind: 'ready' })
