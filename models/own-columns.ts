import { DataTypes, type Model, type ModelAttributeColumnOptions, type ModelStatic } from 'sequelize'
import { NotMigratedError } from '../src/errors.ts'
import type { Database } from './database.ts'
import type { Extensions, Models } from './index.ts'

/**
 * Refuses to start on tables that lack an application's own columns: a new release would fail later, in the middle of its
 * work, where the migration has not been run yet. Asks nothing of a database whose models have none. (E148)
 * @throws {NotMigratedError} that names the columns.
 */
export async function requireOwnColumns(db: Database, models: Models, extend: Extensions = {}): Promise<void> {
  const missing: string[] = []
  for (const name of Object.keys(extend) as (keyof Extensions)[]) {
    const own = Object.keys(extend[name]?.attributes ?? {})
    if (own.length === 0) continue
    const model = models[name] as ModelStatic<Model>
    const table = model.tableName
    const attributes: Readonly<Record<string, ModelAttributeColumnOptions | undefined>> = model.getAttributes()
    const stored = own.filter((key) => !(attributes[key]?.type instanceof DataTypes.VIRTUAL))
    const there = await columnsOf(db, table)
    missing.push(
      ...stored
        .map((key) => attributes[key]?.field ?? key)
        .filter((column) => !there.has(column.toLowerCase()))
        .map((column) => `${table}.${column}`),
    )
  }
  if (missing.length === 0) return
  throw new NotMigratedError(
    `The database lacks columns that connect({ extend }) names: ${missing.join(', ')}. ` +
      "Run the application's own migration first, then start its new release.",
  )
}

/** The names of a table's columns in lower case: no database tells them apart by it. */
async function columnsOf(db: Database, table: string): Promise<ReadonlySet<string>> {
  const sql =
    db.dialect.name === 'sqlite'
      ? 'SELECT name FROM pragma_table_info($table)'
      : 'SELECT COLUMN_NAME AS name FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = $table'
  return new Set((await db.read(sql, { table })).map(({ name }) => String(name).toLowerCase()))
}
