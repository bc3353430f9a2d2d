import type { Migration } from './migration.ts'

/** Indexes by which parked and failed chats are counted: a metric is read often, and the table is large. */
export const backlog: Migration = {
  name: '0004-backlog',
  async up({ queryInterface, tables, transaction }) {
    const { chats } = tables
    const type = queryInterface.sequelize.getDialect() === 'sqlite' ? 'INTEGER' : 'TINYINT(1)'
    // JSON has no index. A virtual column takes no room in the row, and no statement has to keep it.
    await queryInterface.sequelize.query(
      `ALTER TABLE ${chats} ADD COLUMN has_failed ${type} GENERATED ALWAYS AS (failure IS NOT NULL) VIRTUAL`,
      { transaction },
    )
    await queryInterface.addIndex(chats, ['has_failed'], { name: `${chats}_has_failed`, transaction })
    await queryInterface.addIndex(chats, ['parked'], { name: `${chats}_parked`, transaction })
  },
}
