import type { QueryInterface, Transaction } from 'sequelize'
import type { Tables } from '../database.ts'

export interface MigrationContext {
  readonly queryInterface: QueryInterface
  readonly tables: Tables
  /** Holds the lock on the schema; every statement of a step goes through it. */
  readonly transaction: Transaction
}

/**
 * One step of the schema. Steps only go forward: a step that has been released is never changed or undone.
 *
 * MySQL commits each change of the schema by itself. A step that was cut off there runs again from its start, and what it
 * then finds done is passed over (`resume.ts`). So a step adds tables, columns and indexes, and changes rows only in ways
 * that may be repeated; and what the release before it reads and writes stays as it was.
 */
export interface Migration {
  readonly name: string
  up(context: MigrationContext): Promise<void>
}
