import { ConnectionError } from 'sequelize'

/** The part of a mysql2 connection that is used here. */
interface MysqlConnection {
  query(...input: unknown[]): unknown
  execute(...input: unknown[]): unknown
  destroy(): void
}

/**
 * How every session behaves, whatever the server's defaults. The mode is written out whole: it makes writes that don't
 * fit fail, and rules out modes that change what quotes and backslashes mean.
 */
const SESSION = [
  'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED',
  "SET SESSION sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'",
]

/** Sets a new connection up, once, and reports what is sent on it from then on. */
export async function prepareMysqlConnection(input: unknown, onStatement?: (sql: string) => void): Promise<void> {
  const connection = input as MysqlConnection
  try {
    for (const sql of SESSION) await send(connection, sql)
  } catch (error) {
    connection.destroy()
    // As Sequelize names whatever else goes wrong while a connection is made: what it was made for can be tried again.
    throw error instanceof Error ? new ConnectionError(error) : error
  }
  if (onStatement) report(connection, onStatement)
}

function send(connection: MysqlConnection, sql: string): Promise<void> {
  return new Promise((done, fail) => {
    connection.query(sql, (error: Error | null) => (error ? fail(error) : done()))
  })
}

function report(connection: MysqlConnection, onStatement: (sql: string) => void): void {
  const query = connection.query.bind(connection)
  const execute = connection.execute.bind(connection)
  connection.query = (...input) => {
    onStatement(sqlOf(input[0]))
    return query(...input)
  }
  connection.execute = (...input) => {
    onStatement(sqlOf(input[0]))
    return execute(...input)
  }
}

function sqlOf(input: unknown): string {
  if (typeof input === 'object' && input !== null && 'sql' in input) return String(input.sql)
  return String(input)
}
