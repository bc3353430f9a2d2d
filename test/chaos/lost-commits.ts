import type { Sequelize } from 'sequelize'
import { aroundStatements } from '../../src/testing/crashes/statements.ts'
import { isCommit } from './boundary.ts'

/** Of all commits of people. */
const share = 0.03

/**
 * Has the connection die at some commits: before the commit is sent, so that nothing is stored, or before its answer is heard, so that
 * all of it is. Whoever waited can't tell which, and what was to come after the commit does not come.
 * @param onLost told of each; returns whether there are to be more.
 */
export function loseCommits(sequelize: Sequelize, random: () => number, onLost: () => boolean): void {
  let isOver = false
  aroundStatements(sequelize, async ({ sql, connection }, send) => {
    if (isOver || !isCommit(sql) || random() > share) return send()
    isOver = !onLost()
    if (isOver) return send()
    const isStored = random() < 0.5
    if (isStored) await send()
    ;(connection as { destroy(): void }).destroy()
    if (isStored) throw new LostAnswer()
    return send()
  })
}

class LostAnswer extends Error {
  constructor() {
    super('The connection was lost before the answer to COMMIT came')
  }
}
