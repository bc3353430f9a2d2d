import { DataTypes } from 'sequelize'
import type { Migration } from './migration.ts'

/** How the content of a tool result is written, so that `"42"` and `42` read back as they were. */
export const resultEncoding: Migration = {
  name: '0006-result-encoding',
  async up({ queryInterface, tables, transaction }) {
    const word = { type: DataTypes.STRING(8), allowNull: true }
    await queryInterface.addColumn(tables.messages, 'encoding', word, { transaction })
  },
}
