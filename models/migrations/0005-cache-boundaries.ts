import { DataTypes } from 'sequelize'
import type { Migration } from './migration.ts'

/** Which messages end a part of the prompt that the provider is to keep in its cache. */
export const cacheBoundaries: Migration = {
  name: '0005-cache-boundaries',
  async up({ queryInterface, tables, transaction }) {
    const json = { type: DataTypes.JSON, allowNull: true }
    await queryInterface.addColumn(tables.messages, 'cache_until_here', json, { transaction })
  },
}
