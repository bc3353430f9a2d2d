import { DataTypes } from 'sequelize'
import type { Migration } from './migration.ts'

/** Which turn's end the chat's agent has been told of. */
export const turnEnds: Migration = {
  name: '0003-turn-ends',
  async up({ queryInterface, tables, transaction }) {
    await queryInterface.addColumn(
      tables.chats,
      'ended_turn',
      { type: DataTypes.INTEGER, allowNull: true },
      { transaction },
    )
  },
}
