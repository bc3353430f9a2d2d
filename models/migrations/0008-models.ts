import { DataTypes } from 'sequelize'
import { exactCollation } from './collation.ts'
import type { Migration } from './migration.ts'

/** The models that chats name, each once, and which one a chat is with. */
export const modelRows: Migration = {
  name: '0008-models',
  async up({ queryInterface, tables, transaction }) {
    const word = { type: DataTypes.STRING(255), allowNull: true }
    const name = { type: DataTypes.STRING(255), allowNull: false }
    const count = { type: DataTypes.INTEGER, allowNull: true }
    const json = { type: DataTypes.JSON, allowNull: true }
    const time = { type: DataTypes.DATE(3), allowNull: false }
    await queryInterface.createTable(
      tables.models,
      {
        id: { type: DataTypes.STRING(36), allowNull: false, primaryKey: true },
        provider: name,
        model_id: name,
        name,
        family: word,
        context_window: count,
        max_output_tokens: count,
        modalities: json,
        capabilities: json,
        pricing: json,
        metadata: json,
        unlisted_at: { type: DataTypes.DATE(3), allowNull: true },
        created_at: time,
        updated_at: time,
      },
      { charset: 'utf8mb4', collate: await exactCollation(queryInterface, transaction), transaction },
    )
    await queryInterface.addIndex(tables.models, ['provider', 'model_id'], {
      name: `${tables.models}_provider_model`,
      unique: true,
      transaction,
    })
    const id = { type: DataTypes.STRING(36), allowNull: true }
    await queryInterface.addColumn(tables.chats, 'model_row_id', id, { transaction })
    await queryInterface.addIndex(tables.chats, ['model_row_id'], { name: `${tables.chats}_model_row`, transaction })
  },
}
