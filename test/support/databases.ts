import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createConnection } from 'mysql2/promise'

/** A database of one test suite, empty. */
export interface TestDatabase {
  readonly url: string
  drop(): Promise<void>
}

export interface DatabaseKind {
  readonly name: 'SQLite' | 'MariaDB'
  create(): Promise<TestDatabase>
}

/** For suites that need one database only. */
export const sqlite: DatabaseKind = {
  name: 'SQLite',
  async create() {
    const directory = await mkdtemp(join(tmpdir(), 'threadmill-test-'))
    return {
      url: `sqlite:${join(directory, 'test.sqlite')}`,
      drop: () => rm(directory, { recursive: true, force: true }),
    }
  },
}

let created = 0

function mariadb(serverUrl: string): DatabaseKind {
  const run = async (sql: string) => {
    const connection = await createConnection(serverUrl)
    await connection.query(sql)
    await connection.end()
  }
  return {
    name: 'MariaDB',
    async create() {
      const name = `threadmill_test_${process.pid}_${++created}`
      await run(`CREATE DATABASE ${name}`)
      const url = new URL(serverUrl)
      url.pathname = `/${name}`
      return { url: url.href, drop: () => run(`DROP DATABASE IF EXISTS ${name}`) }
    },
  }
}

const serverUrl = process.env.TEST_DATABASE_URL

/**
 * Declares a suite once for each database: SQLite always, MariaDB (or MySQL) where TEST_DATABASE_URL names a server. The
 * one that is left out shows as pending.
 */
export function onEachDatabase(title: string, suite: (kind: DatabaseKind) => void): void {
  describe(`${title} [SQLite]`, () => suite(sqlite))
  if (serverUrl === undefined || serverUrl === '') {
    describe(`${title} [MariaDB]`, () => {
      it('left out: TEST_DATABASE_URL names no server')
    })
    return
  }
  describe(`${title} [MariaDB]`, () => suite(mariadb(serverUrl)))
}
