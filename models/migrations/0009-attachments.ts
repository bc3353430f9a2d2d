import { DataTypes } from 'sequelize'
import { exactCollation } from './collation.ts'
import type { Migration } from './migration.ts'

/** Files of messages, and how many messages hold each stored one. */
export const attachments: Migration = {
  name: '0009-attachments',
  async up({ queryInterface, tables, transaction }) {
    const json = { type: DataTypes.JSON, allowNull: true }
    await queryInterface.addColumn(tables.messages, 'attachments', json, { transaction })
    await queryInterface.addColumn(tables.queuedMessages, 'attachments', json, { transaction })
    const time = { type: DataTypes.DATE(3), allowNull: false }
    await queryInterface.createTable(
      tables.blobs,
      {
        digest: { type: DataTypes.STRING(64), allowNull: false, primaryKey: true },
        byte_size: { type: DataTypes.BIGINT, allowNull: false },
        holders: { type: DataTypes.INTEGER, allowNull: false },
        created_at: time,
        updated_at: time,
      },
      { charset: 'utf8mb4', collate: await exactCollation(queryInterface, transaction), transaction },
    )
  },
}
