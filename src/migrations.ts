import type { QueryInterface, Sequelize } from 'sequelize'
import { settingsTable } from '../config/settings-table.ts'
import { migrations as steps } from '../models/migrations/index.ts'
import { migrate } from '../models/migrator.ts'
import { ArgumentError, ConfigurationError } from './errors.ts'

/** What an umzug is given as its context: Sequelize, its query interface, or an object that holds either. */
export type MigrationsContext =
  | Sequelize
  | QueryInterface
  | {
      /** The Sequelize of the database to migrate. */
      readonly sequelize: Sequelize
    }
  | {
      /** The query interface of the database to migrate. */
      readonly queryInterface: QueryInterface
    }

/** A step of Threadmill's schema as umzug takes it. */
export interface NamedMigration {
  /** The table prefix and the step, such as `threadmill_0001-conversations`. */
  readonly name: string
  /**
   * Applies the step, and those before it, where the database lacks them. Safe beside other processes that migrate.
   * @throws {ConfigurationError} when it fails, or without a Sequelize as context.
   */
  up(params: { readonly context: unknown }): Promise<void>
  /** @throws {ConfigurationError} always: steps only go forward. */
  down(): Promise<void>
}

/**
 * Threadmill's schema as migrations for an application's own umzug (`threadmill/migrations`). Each keeps its own account
 * in `<tablePrefix>migrations`, as `threadmill migrate` and `connect({ migrate: true })` do, whatever storage the umzug
 * has; so none is ever applied twice, whichever way came first.
 * @param options.tablePrefix what table names begin with, as given to `connect`. Default: `threadmill_`.
 * @throws {ArgumentError} for a prefix that no table can have.
 */
export function migrations(options: { readonly tablePrefix?: string | undefined } = {}): NamedMigration[] {
  const { schema, right, default: usual } = settingsTable.tablePrefix
  const tablePrefix = options.tablePrefix ?? usual
  if (!schema.safeParse(tablePrefix).success) {
    throw new ArgumentError(`The option tablePrefix is ${JSON.stringify(tablePrefix)}: it must be ${right}.`)
  }
  return steps.map((step) => ({
    name: `${tablePrefix}${step.name}`,
    async up({ context }) {
      await migrate(sequelizeOf(context), tablePrefix, { to: step.name })
    },
    async down() {
      throw new ConfigurationError(
        `Step ${step.name} of Threadmill's schema can't be undone: steps only go forward. To go back, restore a backup.`,
      )
    },
  }))
}

function sequelizeOf(context: unknown): Sequelize {
  for (const candidate of [
    context,
    member(context, 'sequelize'),
    member(member(context, 'queryInterface'), 'sequelize'),
  ]) {
    if (typeof member(candidate, 'getQueryInterface') === 'function') return candidate as Sequelize
  }
  throw new ConfigurationError(
    'The context of this umzug holds no Sequelize: pass `context: sequelize`, or `context: sequelize.getQueryInterface()`.',
  )
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}
