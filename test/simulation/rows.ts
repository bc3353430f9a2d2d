import type { RowsPort } from '../../src/loop/ports.ts'
import { memoryStatements, type Statements } from '../memory/statements.ts'
import { MemoryTables } from '../memory/tables.ts'
import type { Call, SimulatedProcess } from './process.ts'
import { ttlMs } from './times.ts'
import type { World } from './world.ts'

/** What a process sends to its database. */
export type ProcessStatements = Pick<
  Statements,
  'rows' | 'take' | 'untaken' | 'renewChat' | 'renewToolCall' | 'cancelledAmong' | 'dueChats'
>

/** Where the rows of a world are. */
export interface WorldRows {
  /** As they are stored now: nothing of a transaction that is open. */
  readonly tables: MemoryTables
  /** As applications reach them. */
  readonly statements: Statements
  addChat(id: string): void
  /** As a process does: each statement is waited for, can fail, and is watched. */
  statementsOf(process: SimulatedProcess): ProcessStatements
  /** Undoes what a process had begun and not stored. */
  died(process: SimulatedProcess): void
}

/** How some statements are waited for. */
export const waitsOf: Readonly<Record<string, Call>> = {
  renewChat: { thread: 'renewal' },
  renewToolCall: { thread: 'renewal' },
  cancelledAmong: { idle: true },
  dueChats: { idle: true },
}

/** Rows in memory: a transaction is one step. */
export function memoryRowsOf(world: World): WorldRows {
  const tables = new MemoryTables(() => new Date(world.scheduler.now))
  const statements = memoryStatements(tables, ttlMs)
  return {
    tables,
    statements,
    addChat: (id) => tables.addChat({ id, agent: null }),
    statementsOf: (process) => memoryStatementsOf(world, process, statements),
    died() {},
  }
}

function memoryStatementsOf(world: World, process: SimulatedProcess, statements: Statements): ProcessStatements {
  const { monitor } = world
  const names = Object.keys(statements.rows) as (keyof RowsPort)[]
  const rows = names.map((name) => {
    const statement = (...given: unknown[]) => {
      if (name === 'startToolCall') monitor.starts(process, (given[1] as { id: string }).id)
      return process.call(name, async () => {
        const stored = monitor.writes(process, name, given)
        const came = (statements.rows[name] as (...input: unknown[]) => Promise<unknown>)(...given)
        stored()
        return came
      })
    }
    return [name, statement] as const
  })
  return {
    rows: Object.fromEntries(rows) as unknown as RowsPort,
    take: (options) =>
      process.call('take', async () => {
        const taken = await statements.take(options)
        if (taken) monitor.took(process, options)
        return taken
      }),
    untaken: (chatId) => process.call('untaken', () => statements.untaken(chatId)),
    renewChat: (key, ms) =>
      process.call(
        'renewChat',
        async () => {
          const renewed = monitor.renews(key)
          const kept = await statements.renewChat(key, ms)
          if (kept) renewed()
          return kept
        },
        waitsOf.renewChat,
      ),
    renewToolCall: (callId, claimId, ms) =>
      process.call('renewToolCall', () => statements.renewToolCall(callId, claimId, ms), waitsOf.renewToolCall),
    cancelledAmong: (ids) =>
      process.call('cancelledAmong', () => statements.cancelledAmong(ids), waitsOf.cancelledAmong),
    dueChats: (limit) => process.call('dueChats', () => statements.dueChats(limit), waitsOf.dueChats),
  }
}
