import type { QueryInterface, Transaction } from 'sequelize'
import type { Tables } from '../database.ts'

export interface MigrationContext {
  readonly queryInterface: QueryInterface
  readonly tables: Tables
  /** Holds the lock on the schema; every statement of a step goes through it. */
  readonly transaction: Transaction
}

/** One step of the schema. Steps only go forward: a step that has been released is never changed or undone. */
export interface Migration {
  readonly name: string
  up(context: MigrationContext): Promise<void>
}
