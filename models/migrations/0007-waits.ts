import { DataTypes } from 'sequelize'
import { exactCollation } from './collation.ts'
import type { Migration } from './migration.ts'

/** What decisions about tool calls say beside yes and no, when they expire, and a record of each. */
export const waits: Migration = {
  name: '0007-waits',
  async up({ queryInterface, tables, transaction }) {
    const word = { type: DataTypes.STRING(255), allowNull: true }
    const json = { type: DataTypes.JSON, allowNull: true }
    const time = { type: DataTypes.DATE(3), allowNull: true }
    const isSqlite = queryInterface.sequelize.getDialect() === 'sqlite'
    const text = { type: isSqlite ? DataTypes.TEXT : DataTypes.TEXT('long'), allowNull: true }
    const columns = {
      edited_arguments: json,
      decided_by: word,
      decision_reason: text,
      asked_at: time,
      expires_at: time,
    }
    for (const [name, column] of Object.entries(columns)) {
      await queryInterface.addColumn(tables.toolCalls, name, column, { transaction })
    }
    await queryInterface.addIndex(tables.toolCalls, ['approval', 'asked_at', 'id'], {
      name: `${tables.toolCalls}_inbox`,
      transaction,
    })
    const id = { type: DataTypes.STRING(36), allowNull: false }
    await queryInterface.createTable(
      tables.decisions,
      {
        id: { ...id, primaryKey: true },
        chat_id: { ...id, references: { model: tables.chats, key: 'id' }, onDelete: 'CASCADE', onUpdate: 'NO ACTION' },
        tool_call_id: {
          ...id,
          references: { model: tables.toolCalls, key: 'id' },
          onDelete: 'CASCADE',
          onUpdate: 'NO ACTION',
        },
        action: { type: DataTypes.STRING(16), allowNull: false },
        decided_by: word,
        reason: text,
        request_key: word,
        value: json,
        created_at: { type: DataTypes.DATE(3), allowNull: false },
      },
      { charset: 'utf8mb4', collate: await exactCollation(queryInterface, transaction), transaction },
    )
    await queryInterface.addIndex(tables.decisions, ['chat_id', 'created_at'], {
      name: `${tables.decisions}_chat`,
      transaction,
    })
    await queryInterface.addIndex(tables.decisions, ['tool_call_id'], {
      name: `${tables.decisions}_call`,
      transaction,
    })
  },
}
