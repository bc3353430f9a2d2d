import { SqliteHandle } from '../../../config/sqlite-handle.ts'
import type { Database } from '../../../models/database.ts'

type Bind = Parameters<Database['read']>[1]

interface Statement {
  readonly sql: string
  readonly bind: Bind
  readonly writes: boolean
}

/** The statements that some function of `models/` makes; none of them is sent. */
async function statementsOf(db: Database, act: (db: Database) => Promise<unknown>): Promise<readonly Statement[]> {
  const statements: Statement[] = []
  const noting: Database = {
    ...db,
    async read(sql, bind) {
      statements.push({ sql, bind, writes: false })
      return []
    },
    async write(sql, bind) {
      statements.push({ sql, bind, writes: true })
      return 0
    },
  }
  await act(noting)
  return statements
}

/** How the database would go about the statements of some function, as a text in its own words. */
export async function planOf(db: Database, file: string, act: (db: Database) => Promise<unknown>): Promise<string> {
  const plans: string[] = []
  for (const { sql, bind } of await statementsOf(db, act)) {
    const rows =
      db.dialect.name === 'sqlite' ? explainedBySqlite(file, sql, bind) : await db.read(`EXPLAIN ${sql}`, bind)
    plans.push(...rows.map((row) => JSON.stringify(row)))
  }
  return plans.join('\n')
}

/** Over a connection of its own: its driver does not end the statement that is explained. */
function explainedBySqlite(file: string, sql: string, bind: Bind): Record<string, unknown>[] {
  const handle = new SqliteHandle(file)
  try {
    const values = Object.fromEntries(Object.entries(bind).map(([name, value]) => [`$${name}`, value]))
    return handle.execute(`EXPLAIN QUERY PLAN ${sql}`, values).rows
  } finally {
    handle.close()
  }
}

/**
 * How many rows MariaDB reads for the statements of some function, index entries and those of temporary tables among them. They are carried
 * out, and rolled back. SQLite does not tell: 0.
 */
export async function rowsReadBy(db: Database, act: (db: Database) => Promise<unknown>): Promise<number> {
  if (db.dialect.name === 'sqlite') return 0
  const transaction = await db.sequelize.transaction()
  try {
    const readSoFar = async () => {
      const rows = await db.read("SHOW SESSION STATUS LIKE 'Handler_read%'", {}, transaction)
      return rows.reduce((sum, { Value }) => sum + Number(Value), 0)
    }
    // To look at the counters is to read rows, too.
    const first = await readSoFar()
    const looking = (await readSoFar()) - first
    const before = await readSoFar()
    for (const { sql, bind, writes } of await statementsOf(db, act)) {
      await (writes ? db.write(sql, bind, transaction) : db.read(sql, bind, transaction))
    }
    return (await readSoFar()) - before - looking
  } finally {
    await transaction.rollback()
  }
}
