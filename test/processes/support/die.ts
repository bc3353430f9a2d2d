import { writeSync } from 'node:fs'

/** What a process does to itself before a statement. */
const ways = [
  ['THREADMILL_TEST_DIE_AT', 'SIGKILL'],
  ['THREADMILL_TEST_FREEZE_AT', 'SIGSTOP'],
] as const

/** What a process says just before it freezes itself. */
export const FROZEN = 'FROZEN'

/**
 * Ends or freezes this process at a statement before it is sent: the last of THREADMILL_TEST_DIE_AT or
 * THREADMILL_TEST_FREEZE_AT, a JSON list of patterns, once the ones before it have matched in their order. Never, where
 * neither is set.
 */
export function dieAtStatement(): ((sql: string) => void) | undefined {
  const chosen = ways.find(([name]) => process.env[name] !== undefined)
  if (chosen === undefined) return undefined
  const [name, signal] = chosen
  const ahead = (JSON.parse(process.env[name] ?? '[]') as string[]).map((source) => new RegExp(source))
  return (sql) => {
    if (ahead[0]?.test(sql) !== true) return
    ahead.shift()
    if (ahead.length > 0) return
    if (signal === 'SIGSTOP') writeSync(1, `${FROZEN}\n`)
    process.kill(process.pid, signal)
  }
}
