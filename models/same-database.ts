import type { Sequelize } from 'sequelize'
import { ConfigurationError, UnreachableError } from '../src/errors.ts'
import { migrationStatus } from './migrator.ts'

/**
 * Sees to it that a second way leads to the same tables: the times at which their steps were applied are the same.
 * @throws {UnreachableError} when it leads nowhere.
 * @throws {ConfigurationError} when it leads elsewhere.
 */
export async function requireSameTables(first: Sequelize, second: Sequelize, tablePrefix: string): Promise<void> {
  const wanted = await migrationStatus(first, tablePrefix)
  const found = await migrationStatus(second, tablePrefix).catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error)
    throw new UnreachableError(
      `The connections that renew claims can't be made (${reason}): check what connect({ sequelize }) was made with, or ` +
        'give `databaseUrl` beside it.',
      { cause: error },
    )
  })
  if (JSON.stringify(found) === JSON.stringify(wanted)) return
  throw new ConfigurationError(
    `databaseUrl leads to another database than connect({ sequelize }), or its tables "${tablePrefix}..." differ: claims could not be renewed.`,
  )
}
