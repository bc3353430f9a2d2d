import { expect } from 'chai'
import {
  checkMigrations,
  checkPrefixes,
  checkServer,
  checkSession,
  checkText,
} from '../../../src/cli/doctor/check-database.ts'
import { checkClock, checkNode, checkVersions } from '../../../src/cli/doctor/check-process.ts'
import {
  checkEviction,
  checkModel,
  checkPersistence,
  checkRedis,
  checkUnusable,
} from '../../../src/cli/doctor/check-services.ts'
import type { DatabaseFacts, Finding, ModelFacts, RedisFacts, Status } from '../../../src/cli/doctor/facts.ts'
import { clockOf } from '../../../src/cli/doctor/measure-clock.ts'

const clock = { aheadMs: 3, withinMs: 1 }
const mysql: DatabaseFacts = {
  kind: 'database',
  dialect: 'mysql',
  place: 'db:3306/app',
  isEmbedded: false,
  version: '10.11.6-MariaDB',
  clock,
  session: {
    sql_mode: 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION',
    tx_isolation: 'READ-COMMITTED',
    character_set_connection: 'utf8mb4',
    max_allowed_packet: '16777216',
  },
  tableCollation: 'utf8mb4_bin',
  migrations: { pending: [], unknown: [] },
  prefixes: ['threadmill_'],
}
const session = (more: Record<string, string>) => ({ ...mysql, session: { ...mysql.session, ...more } })
const redis: RedisFacts = {
  kind: 'redis',
  place: 'cache:6379',
  embedded: null,
  version: '7.2.4',
  policy: 'noeviction',
  persists: true,
  clock,
}
const model: ModelFacts = { place: 'api.openai.com', status: 200, why: null, wanted: 'gpt', listed: ['gpt', 'other'] }
const setUp = { tablePrefix: 'threadmill_', redisPrefix: 'threadmill' }
const own = { node: '20.19.0', threadmill: '1.0.0', drivers: { ioredis: '5.1.0' } }
const unusable = { kind: 'unusable', place: 'db', why: 'refused', missing: false } as const

const cases: readonly (readonly [string, Finding, Status, RegExp])[] = [
  ['the oldest Node', checkNode(own), 'ok', /Node 20\.19\.0/],
  ['an older Node', checkNode({ ...own, node: '20.18.3' }), 'fail', /20\.19 or newer/],
  ['a newer Node', checkNode({ ...own, node: '24.1.0' }), 'ok', /24/],
  ['all drivers', checkVersions(own), 'ok', /threadmill 1\.0\.0; ioredis 5\.1\.0/],
  ['a missing driver', checkVersions({ ...own, drivers: { mysql2: null } }), 'fail', /not found: mysql2/],
  ['a clock in step', checkClock('database', { aheadMs: -900, withinMs: 0 }), 'ok', /900 ms behind/],
  ['a clock that may be in step', checkClock('redis', { aheadMs: 1_500, withinMs: 600 }), 'ok', /within 600/],
  ['a clock ahead', checkClock('redis', { aheadMs: 1_500, withinMs: 100 }), 'warn', /1500 ms ahead of[\s\S]*NTP/],
  ['a clock behind', checkClock('database', { aheadMs: -5_000, withinMs: 100 }), 'warn', /behind/],
  ['MariaDB', checkServer(mysql), 'ok', /MariaDB at db:3306\/app$/],
  ['an old MariaDB', checkServer({ ...mysql, version: '10.5.9-MariaDB' }), 'fail', /10\.6/],
  ['MySQL', checkServer({ ...mysql, version: '8.4.0' }), 'ok', /8\.4/],
  ['an old MySQL', checkServer({ ...mysql, version: '5.7.44' }), 'fail', /MySQL 8\.0/],
  [
    'SQLite',
    checkServer({ ...mysql, dialect: 'sqlite', version: 'SQLite 3.45', isEmbedded: true }),
    'ok',
    /one machine/,
  ],
  ['tables that are up to date', checkMigrations(mysql), 'ok', /up to date/],
  [
    'tables that lack a step',
    checkMigrations({ ...mysql, migrations: { pending: ['0002-x'], unknown: [] } }),
    'fail',
    /0002-x[\s\S]*threadmill migrate/,
  ],
  [
    'tables of a newer version',
    checkMigrations({ ...mysql, migrations: { pending: [], unknown: ['0099-y'] } }),
    'warn',
    /0099-y[\s\S]*Update/,
  ],
  ['one set of tables', checkPrefixes(mysql, setUp), 'ok', /tables threadmill_, keys threadmill$/],
  [
    'sets of tables with keys of their own',
    checkPrefixes({ ...mysql, prefixes: ['threadmill_', 'b_'] }, setUp),
    'ok',
    /also in this database: b_/,
  ],
  [
    'keys that another set of tables has',
    checkPrefixes({ ...mysql, prefixes: ['threadmill_', 'b_'] }, { ...setUp, redisPrefix: 'b' }),
    'warn',
    /THREADMILL_REDIS_PREFIX/,
  ],
  ['a session as it should be', checkSession(mysql), 'ok', /READ COMMITTED/],
  [
    'the newer name of the isolation level',
    checkSession(session({ tx_isolation: '', transaction_isolation: 'READ-COMMITTED' })),
    'ok',
    /READ COMMITTED/,
  ],
  [
    'another isolation level',
    checkSession(session({ tx_isolation: 'REPEATABLE-READ' })),
    'fail',
    /lacks READ COMMITTED[\s\S]*proxy/,
  ],
  ['a mode that cuts what does not fit', checkSession(session({ sql_mode: '' })), 'fail', /strict sql_mode/],
  [
    'a mode in which quotes mean something else',
    checkSession(session({ sql_mode: 'STRICT_ALL_TABLES,ANSI_QUOTES' })),
    'fail',
    /ANSI_QUOTES/,
  ],
  ['a session of SQLite', checkSession({ ...mysql, dialect: 'sqlite', session: {} }), 'ok', /IMMEDIATE/],
  ['text as it should be', checkText(mysql), 'ok', /utf8mb4_bin/],
  ['tables that are not there yet', checkText({ ...mysql, tableCollation: null }), 'ok', /not there yet/],
  ['tables without emoji', checkText({ ...mysql, tableCollation: 'utf8mb3_general_ci' }), 'fail', /utf8mb4/],
  ['a connection without emoji', checkText(session({ character_set_connection: 'latin1' })), 'fail', /latin1/],
  [
    'packets below the longest message',
    checkText(session({ max_allowed_packet: '1048576' })),
    'fail',
    /Set max_allowed_packet to 16777216/,
  ],
  ['a database that does not answer', checkUnusable('database', unusable), 'fail', /db: refused[\s\S]*DATABASE_URL/],
  [
    'a file that is not there yet',
    checkUnusable('database', { ...unusable, missing: true }),
    'warn',
    /threadmill migrate/,
  ],
  [
    'an embedded Redis that does not run',
    checkUnusable('redis', { ...unusable, missing: true }),
    'warn',
    /Start a worker/,
  ],
  ['Redis', checkRedis(redis), 'ok', /version 7\.2\.4 at cache:6379$/],
  ['an old Redis', checkRedis({ ...redis, version: '6.0.16' }), 'fail', /6\.2/],
  ['a Redis that tells nothing', checkRedis({ ...redis, version: null }), 'ok', /without a version/],
  ['the stand-in for Redis', checkRedis({ ...redis, embedded: 'js-redis-server' }), 'warn', /slow and forgets/],
  ['no eviction', checkEviction(redis), 'ok', /noeviction/],
  ['eviction', checkEviction({ ...redis, policy: 'allkeys-lru' }), 'fail', /allkeys-lru[\s\S]*noeviction/],
  ['an unknown policy', checkEviction({ ...redis, policy: null }), 'ok', /does not tell/],
  ['persistence', checkPersistence(redis), 'ok', /writes to disk/],
  ['no persistence', checkPersistence({ ...redis, persists: false }), 'ok', /made anew from the rows/],
  ['unknown persistence', checkPersistence({ ...redis, persists: null }), 'ok', /does not tell/],
  ['a model that is listed', checkModel(model), 'ok', /gpt is among 2/],
  ['no configured model', checkModel({ ...model, wanted: null }), 'ok', /2 models/],
  ['a model that is not listed', checkModel({ ...model, wanted: 'gtp' }), 'warn', /without gtp[\s\S]*THREADMILL_MODEL/],
  ['a refused key', checkModel({ ...model, status: 401, listed: null }), 'fail', /OPENAI_API_KEY/],
  ['an endpoint without a list', checkModel({ ...model, status: 404, listed: null }), 'warn', /OPENAI_BASE_URL/],
  [
    'an endpoint that is not there',
    checkModel({ ...model, status: null, why: 'ECONNREFUSED' }),
    'fail',
    /ECONNREFUSED/,
  ],
]

describe('The checks of threadmill doctor', () => {
  for (const [what, { name, status, what: said, fix }, expected, words] of cases) {
    it(`${expected}: ${name}, ${what}`, () => {
      expect(status).to.equal(expected)
      expect(`${said}\n${fix ?? ''}`.trim()).to.match(words)
      expect(fix === null).to.equal(status === 'ok')
    })
  }

  it('know how exactly they know a clock', async () => {
    const { aheadMs, withinMs } = await clockOf(async () => Date.now() + 60_000)
    expect(aheadMs).to.be.closeTo(60_000, withinMs + 2)
  })
})
