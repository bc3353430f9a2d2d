import type { QueryInterface, Sequelize } from 'sequelize'

/** MySQL's words for: the table, column, index or constraint is there already, or what is to go is gone already. */
const done = new Set<unknown>([1050, 1051, 1060, 1061, 1091, 1826, 3822])

/**
 * The query interface for a step that was cut off and now runs again from its start: statements whose effect is there
 * already are passed over. Only MySQL needs it, where each change of the schema is committed by itself.
 */
export function resuming(queryInterface: QueryInterface): QueryInterface {
  const sequelize: Sequelize = Object.create(queryInterface.sequelize)
  const query = async (...input: unknown[]) => {
    try {
      return await Reflect.apply(queryInterface.sequelize.query, queryInterface.sequelize, input)
    } catch (error) {
      if (isDone(error)) return [[], undefined]
      throw error
    }
  }
  Object.assign(sequelize, { query })
  return Object.create(queryInterface, { sequelize: { value: sequelize } })
}

function isDone(error: unknown): boolean {
  const cause = error instanceof Error && 'parent' in error ? error.parent : error
  return cause instanceof Error && 'errno' in cause && done.has(cause.errno)
}
