import { ConfigurationError } from '../src/errors.ts'

/** What Threadmill logs through: pino, the console, or anything that takes an object and a text as they do. */
export interface Logger {
  /** What is only of use while looking for a fault. */
  debug(facts: object, text: string): void
  /** What happens in the normal course: a turn that failed, a worker that closes. */
  info(facts: object, text: string): void
  /** What went wrong and mends itself: a lost ring, a claim that was not renewed in time. */
  warn(facts: object, text: string): void
  /** What needs somebody. */
  error(facts: object, text: string): void
}

/** @throws {ConfigurationError} for what lacks one of the methods. */
export function requireLogger(logger: Logger): Logger {
  const given: Readonly<Record<string, unknown>> = { ...named(logger) }
  const missing = levels.filter((level) => typeof given[level] !== 'function')
  if (missing.length === 0) return logger
  throw new ConfigurationError(
    `connect({ logger }) has no ${missing.join(', ')}: give pino, or an object with these methods.`,
  )
}

const levels = ['debug', 'info', 'warn', 'error'] as const

function named(logger: unknown): Record<string, unknown> {
  if (typeof logger !== 'object' || logger === null) return {}
  return Object.fromEntries(levels.map((level) => [level, Reflect.get(logger, level)]))
}
