import { Option } from 'commander'
import type { Cli, CommonOptions, Registration } from '../cli.ts'

/** Options of `threadmill migrate`. */
export interface MigrateOptions extends CommonOptions {
  readonly status?: boolean
  readonly to?: string
  readonly dryRun?: boolean
}

/** `threadmill migrate`: brings the tables up to date, or says how far they are. */
export const registerMigrate: Registration = (program, cli) => {
  const command = program
    .command('migrate')
    .description("bring the database's tables up to date; safe when several processes do it at once")
    .addOption(new Option('--status', 'only list the steps, and which are applied').conflicts(['to', 'dryRun']))
    .option('--to <name>', 'go no further than this step')
    .option('--dry-run', 'only list the steps that would be applied')
  cli
    .common(
      command,
      ['databaseUrl', 'tablePrefix', 'dataDir'],
      ['threadmill migrate', 'threadmill migrate --status --json'],
    )
    .action((options: MigrateOptions) => run(cli, options))
}

async function run(cli: Cli, options: MigrateOptions): Promise<void> {
  const { migrateTables, showMigrations } = await import('../migrations.ts')
  const settings = cli.settings(options, { redis: true })
  await (options.status ? showMigrations(cli, settings, options) : migrateTables(cli, settings, options))
}
