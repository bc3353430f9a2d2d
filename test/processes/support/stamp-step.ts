import { DataTypes, QueryTypes, type Sequelize } from 'sequelize'
import { SequelizeStorage, Umzug } from 'umzug'
import { migrations } from '../../../src/migrations.ts'

/** The step of the schema that a release of an application brings: a column that the release before it does not know. */
export const stampStep = '0001-stamp'

/** Runs Threadmill's steps, which have nothing to do, and that one, by the application's own umzug. */
export async function addStamp(sequelize: Sequelize): Promise<string[]> {
  const own = {
    name: stampStep,
    up: async () => {
      const column = { type: DataTypes.STRING(20), allowNull: true }
      await sequelize.getQueryInterface().addColumn('threadmill_chats', 'stamp', column)
    },
  }
  const umzug = new Umzug({
    migrations: [...migrations(), own],
    context: sequelize,
    storage: new SequelizeStorage({ sequelize }),
    logger: undefined,
  })
  return (await umzug.up()).map(({ name }) => name)
}

/** Stamps at most so many chats that no new release has run yet; each batch a statement of its own. Returns how many. */
export async function backfill(sequelize: Sequelize, most: number): Promise<number> {
  const found = await sequelize.query<{ id: string }>(
    `SELECT id FROM threadmill_chats WHERE stamp IS NULL LIMIT ${most}`,
    { type: QueryTypes.SELECT },
  )
  for (const { id } of found) {
    await sequelize.query("UPDATE threadmill_chats SET stamp = 'old' WHERE id = $id AND stamp IS NULL", {
      bind: { id },
    })
  }
  return found.length
}

/** Notes a step as a later release of Threadmill would have, which this one does not know. */
export async function noteLaterStep(sequelize: Sequelize): Promise<void> {
  await sequelize.query(
    "INSERT INTO threadmill_migrations (name, started_at, applied_at) VALUES ('9999-later', '2026-01-01', '2026-01-01')",
  )
}
