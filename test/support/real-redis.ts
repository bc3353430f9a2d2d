import { spawnSync } from 'node:child_process'

const present = spawnSync('redis-server', ['--version']).error === undefined

/**
 * A test of what only a real Redis does: a restart under load, CLIENT PAUSE and KILL, passwords, sentinels. Without
 * redis-server on PATH, where tests run on js-redis-server, it shows as left out.
 */
export function itOnRealRedis(title: string, test: () => void | Promise<void>): Mocha.Test {
  return present ? it(title, test) : it(`${title} (left out: no redis-server on PATH)`)
}
