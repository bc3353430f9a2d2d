import { checkDatabase } from '../../config/check-database.ts'
import { openDatabase } from '../../config/database.ts'
import type { Logger } from '../../config/logger.ts'
import type { Settings } from '../../config/settings.ts'
import { type Database, databaseOf } from '../../models/database.ts'
import { type ConnectOptions, Threadmill } from '../threadmill.ts'
import type { Cli } from './cli.ts'

/** Does something with the database alone: no Redis is needed, or started. */
export async function withDatabase<T>(settings: Settings, work: (db: Database) => Promise<T>): Promise<T> {
  const sequelize = openDatabase(settings)
  try {
    await checkDatabase(sequelize)
    return await work(databaseOf(sequelize, settings.tablePrefix))
  } finally {
    await sequelize.close()
  }
}

/** Does something with a whole connection. What there is to warn of, such as a stand-in for Redis, goes beside the output. */
export async function withMill<T>(cli: Cli, settings: Settings, work: (mill: Threadmill) => Promise<T>): Promise<T> {
  const mill = await Threadmill.connect({ ...asOptions(settings), logger: warningsOf(cli) })
  try {
    return await work(mill)
  } finally {
    await mill.close()
  }
}

/** Settled settings as options: what they leave open is left out. */
export function asOptions(settings: Settings): ConnectOptions {
  const { databaseUrl, redisUrl, openaiApiKey, openaiBaseUrl, model, boardPassword, ...others } = settings
  return {
    ...others,
    databaseUrl: databaseUrl ?? undefined,
    redisUrl: redisUrl ?? undefined,
    openaiApiKey: openaiApiKey ?? undefined,
    openaiBaseUrl: openaiBaseUrl ?? undefined,
    model: model ?? undefined,
    boardPassword: boardPassword ?? undefined,
  }
}

/** How long a warning that was given is not given again, in ms: each connection of a process has the same trouble. */
const sameWarningMs = 30_000

function warningsOf(cli: Cli): Logger {
  const given = new Map<string, number>()
  const say = (_: object, text: string) => {
    const before = given.get(text)
    if (before !== undefined && performance.now() - before < sameWarningMs) return
    given.set(text, performance.now())
    cli.note(text)
  }
  const silent = () => {}
  return { debug: silent, info: silent, warn: say, error: say }
}
