import { DataTypes } from 'sequelize'
import { exactCollation } from './collation.ts'
import type { Migration } from './migration.ts'

/** What became of messages that left the queue. */
export const receipts: Migration = {
  name: '0011-receipts',
  async up({ queryInterface, tables, transaction }) {
    const id = { type: DataTypes.STRING(36), allowNull: false }
    const time = { type: DataTypes.DATE(3), allowNull: false }
    await queryInterface.createTable(
      tables.receipts,
      {
        id: { ...id, primaryKey: true },
        chat_id: { ...id, references: { model: tables.chats, key: 'id' }, onDelete: 'CASCADE', onUpdate: 'NO ACTION' },
        status: { type: DataTypes.STRING(16), allowNull: false },
        // Refers to no row: it goes on saying where a message went that an edit removed since.
        message_id: { type: DataTypes.STRING(36), allowNull: true },
        queued_at: time,
        settled_at: time,
      },
      { charset: 'utf8mb4', collate: await exactCollation(queryInterface, transaction), transaction },
    )
    await queryInterface.addIndex(tables.receipts, ['chat_id'], { name: `${tables.receipts}_chat`, transaction })
  },
}
