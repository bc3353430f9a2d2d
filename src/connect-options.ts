import * as z from 'zod'
import { type SettingName, settingsTable } from '../config/settings-table.ts'
import { ConfigurationError } from './errors.ts'
import type { ConnectOptions } from './threadmill.ts'

const flag = z.boolean('must be true or false').optional()
const callable = z.custom((value) => typeof value === 'function', 'must be a function').optional()
const named = (what: string) =>
  z.custom((value) => typeof (value as { name?: unknown } | null)?.name === 'string', `must be ${what}`)
/** Looked at by what uses it. */
const later = z.unknown().optional()

type Others = Exclude<keyof ConnectOptions, SettingName>

const others: Record<Others, z.ZodType> = {
  agents: z.array(named('an agent of defineAgent'), 'must be a list of agents').optional(),
  tools: z.array(named('a tool of defineTool'), 'must be a list of tools').optional(),
  contextFor: callable,
  attachments: later,
  migrate: flag,
  sequelize: later,
  redis: later,
  extend: z.looseObject({}, 'must be an object').optional(),
  observe: z.looseObject({ onStatement: callable, onCommand: callable }, 'must be an object').optional(),
  logger: later,
  onObservation: callable,
  metrics: later,
  tracing: later,
  observeContent: flag,
}
const settings = Object.fromEntries(Object.keys(settingsTable).map((name) => [name, later]))
const schema = z.strictObject({ ...settings, ...others }, 'must be an object')

/**
 * Refuses options that `connect` does not have, and those that are of the wrong kind: a misspelt one would be taken for none. Settings
 * are checked with the environment, where they are read.
 * @throws {ConfigurationError} that names them all, without their values.
 */
export function requireConnectOptions(options: unknown): void {
  const parsed = schema.safeParse(options)
  if (parsed.success) return
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'options'}: ${message}`)
  throw new ConfigurationError(`connect() can't take this. ${problems.join('; ')}.`)
}
