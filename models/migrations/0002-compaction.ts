import { DataTypes } from 'sequelize'
import type { Migration } from './migration.ts'

/** Summaries that stand for what came before them, and the wish to have one made. */
export const compaction: Migration = {
  name: '0002-compaction',
  async up({ queryInterface, tables, transaction }) {
    const count = { type: DataTypes.INTEGER, allowNull: false, defaultValue: 0 }
    await queryInterface.addColumn(
      tables.messages,
      'summary_through',
      { type: DataTypes.INTEGER, allowNull: true },
      { transaction },
    )
    await queryInterface.addColumn(
      tables.chats,
      'compact_at',
      { type: DataTypes.DATE(3), allowNull: true },
      { transaction },
    )
    await queryInterface.addColumn(tables.chats, 'compact_seq', count, { transaction })
    await queryInterface.addColumn(tables.chats, 'compact_attempts', count, { transaction })
    await queryInterface.addColumn(tables.chats, 'compactions', count, { transaction })
    await queryInterface.addIndex(tables.messages, ['chat_id', 'summary_through'], {
      name: `${tables.messages}_summary`,
      transaction,
    })
    await queryInterface.addIndex(tables.messages, ['chat_id', 'role'], {
      name: `${tables.messages}_role`,
      transaction,
    })
    await queryInterface.addIndex(tables.chats, ['compact_at'], { name: `${tables.chats}_compact`, transaction })
  },
}
