import { DataTypes } from 'sequelize'
import type { Migration } from './migration.ts'

/** Owners of queued messages and usage entries, chats listed by owner and agent, and which chat one was forked from. */
export const owners: Migration = {
  name: '0010-owners',
  async up({ queryInterface, tables, transaction }) {
    const word = { type: DataTypes.STRING(255), allowNull: true }
    const { chats, queuedMessages, usages } = tables
    await queryInterface.addColumn(
      chats,
      'forked_from',
      { type: DataTypes.STRING(36), allowNull: true },
      { transaction },
    )
    await queryInterface.addColumn(
      chats,
      'forked_position',
      { type: DataTypes.INTEGER, allowNull: true },
      { transaction },
    )
    await queryInterface.addColumn(queuedMessages, 'owner_key', word, { transaction })
    await queryInterface.addColumn(usages, 'owner', word, { transaction })
    await queryInterface.sequelize.query(
      `UPDATE ${usages} SET owner = (SELECT c.owner FROM ${chats} c WHERE c.id = chat_id) WHERE owner IS NULL`,
      { transaction },
    )
    const listed = [
      [chats, ['created_at', 'id'], 'listed'],
      [chats, ['owner', 'created_at', 'id'], 'listed_owner'],
      [chats, ['agent', 'created_at', 'id'], 'listed_agent'],
      [queuedMessages, ['owner_key'], 'owner'],
      [usages, ['owner', 'created_at'], 'owner'],
    ] as const
    for (const [table, columns, name] of listed) {
      await queryInterface.addIndex(table, [...columns], { name: `${table}_${name}`, transaction })
    }
    // The index that begins with the owner serves for it too.
    await queryInterface.removeIndex(chats, `${chats}_owner`, { transaction })
  },
}
