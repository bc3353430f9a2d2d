import { DataTypes } from 'sequelize'
import type { Migration } from './migration.ts'

/** Sub-chats that answer a tool call, what instructions are made with, and hand-overs between agents. */
export const agents: Migration = {
  name: '0012-agents',
  async up({ queryInterface, tables, transaction }) {
    const { chats } = tables
    const id = { type: DataTypes.STRING(36), allowNull: true }
    const json = { type: DataTypes.JSON, allowNull: true }
    const parent = { ...id, references: { model: chats, key: 'id' }, onDelete: 'CASCADE' }
    await queryInterface.addColumn(chats, 'parent_id', parent, { transaction })
    await queryInterface.addColumn(chats, 'parent_call_id', id, { transaction })
    await queryInterface.addColumn(chats, 'root_id', id, { transaction })
    const depth = { type: DataTypes.INTEGER, allowNull: false, defaultValue: 0 }
    await queryInterface.addColumn(chats, 'depth', depth, { transaction })
    await queryInterface.addColumn(chats, 'transfer_to', json, { transaction })
    await queryInterface.addColumn(chats, 'inputs', json, { transaction })
    await queryInterface.addIndex(chats, ['parent_id'], { name: `${chats}_parent`, transaction })
    await queryInterface.addIndex(chats, ['parent_call_id'], {
      name: `${chats}_parent_call`,
      unique: true,
      transaction,
    })
  },
}
