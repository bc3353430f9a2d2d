import { expect } from 'chai'
import { pino } from 'pino'
import { type Logger, requireLogger } from '../../config/logger.ts'
import { ConfigurationError } from '../../src/errors.ts'

describe('The logger', () => {
  it("may be pino, one of pino's children, or the console", () => {
    const root = pino({ level: 'silent' })
    const loggers: Logger[] = [root, root.child({ part: 'chats' }), console]
    for (const logger of loggers) expect(requireLogger(logger)).to.equal(logger)
  })

  it('is refused when it lacks a method, which is named', () => {
    const { debug: _, ...part } = { debug() {}, info() {}, warn() {}, error() {} }
    expect(() => requireLogger(part as unknown as Logger)).to.throw(ConfigurationError, 'debug')
    expect(() => requireLogger((() => {}) as unknown as Logger)).to.throw(
      ConfigurationError,
      'debug, info, warn, error',
    )
  })
})
