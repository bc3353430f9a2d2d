import type { Sequelize } from 'sequelize'

/** A statement that is about to be sent. */
export interface SentStatement {
  readonly sql: string
  /** Its values, as the driver gets them. */
  readonly parameters: unknown
  /** What it is part of; null for one that stands alone. */
  readonly transaction: object | null
  /** What it is sent over, as Sequelize has it. */
  readonly connection: unknown
}

/** The part of a query of Sequelize's that is used here; it does not type its hooks on queries. */
interface Query {
  readonly connection?: unknown
  run(sql: string, parameters?: unknown): Promise<unknown>
}
type OnQuery = (hook: 'beforeQuery', listen: (options: { transaction?: object | null }, query: Query) => void) => void

/** Has every statement of a Sequelize, `BEGIN` and `COMMIT` included, sent by `around`, which may wait, or never send it. */
export function aroundStatements(
  sequelize: Sequelize,
  around: (statement: SentStatement, send: () => Promise<unknown>) => Promise<unknown>,
): void {
  const addHook = sequelize.addHook.bind(sequelize) as unknown as OnQuery
  addHook('beforeQuery', ({ transaction = null }, query) => {
    const run = query.run.bind(query)
    query.run = (sql, parameters) =>
      around({ sql, parameters, transaction, connection: query.connection }, () => run(sql, parameters))
  })
}
