import { mkdir } from 'node:fs/promises'
import type { Settings } from '../../config/settings.ts'
import { migrate, migrationStatus } from '../../models/migrator.ts'
import type { Cli, CommonOptions } from './cli.ts'
import type { MigrateOptions } from './commands/migrate.ts'
import { withDatabase } from './connect.ts'
import { progressOf } from './progress.ts'

/** Lists every step, and when it was applied. */
export async function showMigrations(cli: Cli, settings: Settings, { json }: CommonOptions): Promise<void> {
  const steps = await withDatabase(settings, (db) => migrationStatus(db.sequelize, settings.tablePrefix))
  if (json) cli.json(steps)
  else for (const { name, appliedAt } of steps) cli.line(`${name}  ${appliedAt?.toISOString() ?? 'pending'}`)
}

/** Applies what is missing, or only says what that is. */
export async function migrateTables(cli: Cli, settings: Settings, options: MigrateOptions): Promise<void> {
  if (settings.databaseUrl === null) await mkdir(settings.dataDir, { recursive: true, mode: 0o700 })
  const { to, dryRun = false } = options
  const applied = await withDatabase(settings, async ({ sequelize }) => {
    const steps = await migrationStatus(sequelize, settings.tablePrefix)
    const missing = steps.filter(({ appliedAt }) => appliedAt === null).length
    const progress = progressOf(cli.io.stderr, dryRun ? 0 : missing, 'steps')
    try {
      return await migrate(sequelize, settings.tablePrefix, { to, dryRun, onMigrated: () => progress.step() })
    } finally {
      progress.stop()
    }
  })
  if (options.json) cli.json(dryRun ? { pending: applied } : { applied })
  else if (applied.length === 0) cli.line('The tables are up to date.')
  else for (const name of applied) cli.line(`${dryRun ? 'would apply' : 'applied'} ${name}`)
}
