import { DataTypes } from 'sequelize'
import type { Migration } from './migration.ts'

/** How often a process died while it ran a chat, so that one that kills its workers is told from the others. */
export const deaths: Migration = {
  name: '0013-deaths',
  async up({ queryInterface, tables, transaction }) {
    const count = { type: DataTypes.INTEGER, allowNull: false, defaultValue: 0 }
    await queryInterface.addColumn(tables.chats, 'deaths', count, { transaction })
    const word = { type: DataTypes.STRING(255), allowNull: true }
    await queryInterface.addColumn(tables.chats, 'last_death', word, { transaction })
  },
}
