import { setTimeout as wait } from 'node:timers/promises'
import { type Connection, createConnection, type RowDataPacket } from 'mysql2/promise'

/** What somebody else does to the database of a chaos run, past its proxy. */
export interface Meddler {
  /** Ends some of the connections that its schema has. */
  killConnections(): Promise<void>
  /** Runs into a transaction of a worker; resolves with how many deadlocks the server counted meanwhile. */
  deadlock(): Promise<number>
}

const triesMs = 2_000
const heldMs = 300
/** So many rows of its own make a transaction the heavier one of two, which is not the one that is rolled back. */
const ballast = 300

export function meddlerOf({ port, schema }: { readonly port: number; readonly schema: string }): Meddler {
  const on = async <T>(work: (connection: Connection) => Promise<T>): Promise<T> => {
    const connection = await createConnection({ host: '127.0.0.1', port, user: 'root', database: schema })
    try {
      return await work(connection)
    } finally {
      connection.destroy()
    }
  }
  return {
    killConnections: () =>
      on(async (connection) => {
        const [rows] = await connection.query<RowDataPacket[]>(
          'SELECT id FROM information_schema.processlist WHERE db = ? AND id <> CONNECTION_ID()',
          [schema],
        )
        for (const { id } of rows.filter((_, at) => at % 2 === 0)) await connection.query(`KILL ${id}`).catch(() => {})
      }),
    deadlock: () =>
      on(async (connection) => {
        const before = await deadlocksOf(connection)
        await prepare(connection)
        const begun = performance.now()
        while (performance.now() - begun < triesMs) {
          const call = await openCall(connection)
          if (call === null) await wait(20)
          else await runInto(connection, call)
          const met = (await deadlocksOf(connection)) - before
          if (met > 0) return met
        }
        return 0
      }),
  }
}

interface OpenCall {
  readonly id: string
  readonly chatId: string
}

async function prepare(connection: Connection): Promise<void> {
  await connection.query('CREATE TABLE IF NOT EXISTS chaos_ballast (id INT PRIMARY KEY AUTO_INCREMENT, n INT NOT NULL)')
  const [[counted]] = await connection.query<RowDataPacket[]>('SELECT COUNT(*) AS rows_there FROM chaos_ballast')
  const missing = ballast - Number(counted?.rows_there)
  if (missing > 0)
    await connection.query(
      `INSERT INTO chaos_ballast (n) VALUES ${Array.from({ length: missing }, () => '(0)').join(', ')}`,
    )
  await connection.query('SET SESSION innodb_lock_wait_timeout = 2')
}

/** A call that a worker executes now: its result will be linked under the lock of its chat. */
async function openCall(connection: Connection): Promise<OpenCall | null> {
  const [[row]] = await connection.query<RowDataPacket[]>(
    'SELECT id, chat_id FROM threadmill_tool_calls WHERE result_id IS NULL AND claimed_until > NOW(3) ORDER BY started_at DESC LIMIT 1',
  )
  return row === undefined ? null : { id: String(row.id), chatId: String(row.chat_id) }
}

/** Locks the call first and its chat second, the other way round than everybody else. */
async function runInto(connection: Connection, { id, chatId }: OpenCall): Promise<void> {
  await connection.beginTransaction()
  try {
    await connection.query('UPDATE chaos_ballast SET n = n + 1')
    await connection.query('SELECT id FROM threadmill_tool_calls WHERE id = ? FOR UPDATE', [id])
    await wait(heldMs)
    await connection.query('SELECT id FROM threadmill_chats WHERE id = ? FOR UPDATE', [chatId])
  } catch {
    // This one lost.
  }
  await connection.rollback()
}

async function deadlocksOf(connection: Connection): Promise<number> {
  const [[row]] = await connection.query<RowDataPacket[]>("SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'")
  return Number(row?.Value)
}
