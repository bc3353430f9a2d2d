/**
 * Ends this process by SIGKILL at a statement before it is sent: the last of THREADMILL_TEST_DIE_AT, a JSON list of
 * patterns, once the ones before it have matched in their order. Never, where that is not set.
 */
export function dieAtStatement(): ((sql: string) => void) | undefined {
  const text = process.env.THREADMILL_TEST_DIE_AT
  if (text === undefined) return undefined
  const ahead = (JSON.parse(text) as string[]).map((source) => new RegExp(source))
  return (sql) => {
    if (ahead[0]?.test(sql) !== true) return
    ahead.shift()
    if (ahead.length === 0) process.kill(process.pid, 'SIGKILL')
  }
}
