/** What Threadmill logs through: pino, or anything that takes an object and a text the way pino does. */
export interface Logger {
  debug(facts: object, text: string): void
  info(facts: object, text: string): void
  warn(facts: object, text: string): void
  error(facts: object, text: string): void
}

const nothing = (): void => {}

/** The default: says nothing. */
export const silentLogger: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing }
