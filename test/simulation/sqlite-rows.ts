import type { Database } from '../../models/database.ts'
import { databaseRows } from '../../src/loop/database-rows.ts'
import type { RowsPort } from '../../src/loop/ports.ts'
import { databaseStatements, type Statements } from '../memory/statements.ts'
import type { MemoryTables } from '../memory/tables.ts'
import type { SimulatedProcess } from './process.ts'
import { type ProcessStatements, type WorldRows, waitsOf } from './rows.ts'
import type { SqliteFile } from './sqlite-file.ts'
import { type Sender, type Server, sessionOf } from './sqlite-session.ts'
import { ttlMs } from './times.ts'
import type { World } from './world.ts'
import { WriteLock } from './write-lock.ts'

type Watch = Pick<Sender, 'begins' | 'stored'>

/** Most of the time that an application's statement is on its way, in ms. */
const appMs = 10

/** The rows of a real database: each statement of `models/` is a step of its own, BEGIN and COMMIT too. */
export function sqliteRowsOf(world: World, file: SqliteFile): WorldRows {
  const { scheduler, monitor } = world
  let copy: MemoryTables | null = null
  const now = () => new Date(scheduler.now)
  const lock = new WriteLock(scheduler, file.writer)
  const changed = () => {
    copy = null
  }
  const server: Server = { writer: file.writer, reader: file.reader, lock, now, changed }
  file.empty()

  const wait = (ms: number) => new Promise<void>((resolve) => scheduler.after(ms, resolve))
  const forApps = sessionOf(server, {
    process: null,
    send: async (_sql, effect) => {
      await wait(world.random() * appMs)
      return effect()
    },
    wait,
    random: world.random,
  })

  const sessionFor = (process: SimulatedProcess, name: string, watch: Watch = {}): Statements => {
    const db: Database = sessionOf(server, {
      process,
      send: (sql, effect) => process.call(name, effect, { ...waitsOf[name], ms: 15, sql }),
      wait: (ms) => new Promise((resolve) => process.later(ms, resolve, waitsOf[name]?.thread)),
      random: process.random,
      ...watch,
    })
    return databaseStatements(db, ttlMs)
  }

  const rowsOf = (process: SimulatedProcess): RowsPort => {
    const names = Object.keys(databaseRows(forApps, ttlMs)) as (keyof RowsPort)[]
    const rows = names.map((name) => {
      const statement = (...given: unknown[]) => {
        if (name === 'startToolCall') monitor.starts(process, (given[1] as { id: string }).id)
        let stored = () => {}
        const begins = () => {
          stored = monitor.writes(process, name, given)
        }
        const statements = sessionFor(process, name, { begins, stored: () => stored() })
        return (statements.rows[name] as (...input: unknown[]) => Promise<unknown>)(...given)
      }
      return [name, statement] as const
    })
    return Object.fromEntries(rows) as unknown as RowsPort
  }

  const statementsOf = (process: SimulatedProcess): ProcessStatements => ({
    rows: rowsOf(process),
    take: (options) => {
      const stored = (rows: number) => {
        if (rows === 1) monitor.took(process, options)
      }
      return sessionFor(process, 'take', { stored }).take(options)
    },
    untaken: (chatId) => sessionFor(process, 'untaken').untaken(chatId),
    renewChat: (key, ms) => {
      let renewed = () => {}
      const begins = () => {
        renewed = monitor.renews(key)
      }
      const stored = (rows: number) => {
        if (rows === 1) renewed()
      }
      return sessionFor(process, 'renewChat', { begins, stored }).renewChat(key, ms)
    },
    renewToolCall: (callId, claimId, ms) => sessionFor(process, 'renewToolCall').renewToolCall(callId, claimId, ms),
    cancelledAmong: (ids) => sessionFor(process, 'cancelledAmong').cancelledAmong(ids),
    dueChats: (limit) => sessionFor(process, 'dueChats').dueChats(limit),
  })

  return {
    get tables() {
      copy ??= file.read(now)
      return copy
    },
    statements: databaseStatements(forApps, ttlMs),
    addChat: (id) => file.addChat(id, now()),
    statementsOf,
    died: (process) => lock.died(process),
  }
}
