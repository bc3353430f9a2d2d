import { type Sequelize, Transaction } from 'sequelize'
import { tableNames } from './database.ts'

/** Removes all tables of a prefix with what is in them, and the account of their migrations; those that are not there are no error. */
export async function dropTables(sequelize: Sequelize, tablePrefix: string): Promise<void> {
  const { chats, ...others } = tableNames(tablePrefix)
  // Those that refer to others first. SQLite looks at the rows of what it drops.
  const { messages, toolCalls, models, blobs, ...leaves } = others
  const tables = [...Object.values(leaves), toolCalls, messages, chats, models, blobs, `${tablePrefix}migrations`]
  const isSqlite = sequelize.getDialect() === 'sqlite'
  // One connection for all of it: the checks of keys are the session's.
  await sequelize.transaction({ type: Transaction.TYPES.IMMEDIATE }, async (transaction) => {
    const run = (sql: string) => sequelize.query(sql, { transaction })
    if (!isSqlite) await run('SET FOREIGN_KEY_CHECKS = 0')
    try {
      if (isSqlite) await run('PRAGMA defer_foreign_keys = ON')
      for (const table of tables) await run(`DROP TABLE IF EXISTS ${table}`)
    } finally {
      if (!isSqlite) await run('SET FOREIGN_KEY_CHECKS = 1')
    }
  })
}
