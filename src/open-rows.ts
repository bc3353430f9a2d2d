import { type Sequelize, Transaction } from 'sequelize'
import { checkDatabase } from '../config/check-database.ts'
import { databaseTarget, openTarget } from '../config/database.ts'
import { checkSessions, targetOf } from '../config/own-sequelize.ts'
import type { Settings } from '../config/settings.ts'
import type { DatabaseTarget } from '../config/urls.ts'
import type { Manner } from '../models/database.ts'
import { migrate, requireMigrated } from '../models/migrator.ts'
import { requireSameTables } from '../models/same-database.ts'
import { ConfigurationError } from './errors.ts'

/** A database that is checked and migrated. */
export interface OpenedDatabase {
  readonly sequelize: Sequelize
  readonly manner: Manner
  /** Where the thread that renews claims connects to. */
  readonly renewal: DatabaseTarget
  close(): Promise<void>
}

/** What the application brings along. */
export interface OwnDatabase {
  readonly sequelize: Sequelize | undefined
  /** Whether it gave a `databaseUrl` too. */
  readonly isUrlBeside: boolean
}

interface OpenRowsOptions {
  readonly migrates: boolean
  readonly onStatement: ((sql: string) => void) | undefined
}

/** Opens the database of the settings, or takes the application's own; what has to be closed again is put into `opened`. */
export async function openRows(
  settings: Settings,
  own: OwnDatabase,
  { migrates, onStatement }: OpenRowsOptions,
  opened: (() => Promise<unknown>)[],
): Promise<OpenedDatabase> {
  const { tablePrefix } = settings
  const database =
    own.sequelize === undefined
      ? openOurs(settings, onStatement)
      : takeOwn(own.sequelize, own.isUrlBeside ? databaseTarget(settings) : null, onStatement)
  const { sequelize, renewal } = database
  opened.push(() => database.close())
  await checkDatabase(sequelize)
  if (own.sequelize !== undefined) await checkSessions(sequelize)
  if (migrates) await migrate(sequelize, tablePrefix)
  await requireMigrated(sequelize, tablePrefix)
  if (own.sequelize !== undefined) {
    const second = openTarget(renewal, { poolMax: 1 })
    await requireSameTables(sequelize, second, tablePrefix).finally(() => second.close())
  }
  return database
}

function openOurs(settings: Settings, onStatement: OpenRowsOptions['onStatement']): OpenedDatabase {
  const renewal = databaseTarget(settings)
  const sequelize = openTarget(renewal, { poolMax: settings.databasePool, onStatement })
  return { sequelize, manner: {}, renewal, close: () => sequelize.close() }
}

/** Whatever its sessions are like, the application goes on to have them so: each transaction says how it reads. */
function takeOwn(
  sequelize: Sequelize,
  beside: DatabaseTarget | null,
  onStatement: OpenRowsOptions['onStatement'],
): OpenedDatabase {
  if (beside !== null && beside.kind !== 'mysql') {
    throw new ConfigurationError(
      'databaseUrl beside connect({ sequelize }) must name the same MySQL or MariaDB database.',
    )
  }
  // Its own logger may show what is bound, which holds the text of messages.
  const logging =
    onStatement === undefined ? false : (line: string) => onStatement(line.replace(/^Executing \([^)]*\): /, ''))
  const begin = { isolationLevel: Transaction.ISOLATION_LEVELS.READ_COMMITTED, logging }
  const manner: Manner = { begin, logging, readsCommitted: false }
  return { sequelize, manner, renewal: beside ?? targetOf(sequelize), close: async () => {} }
}
