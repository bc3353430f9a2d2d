import { resolve } from 'node:path'
import { expect } from 'chai'
import { type ConnectOptions, readEnvironment, resolveSettings } from '../../config/settings.ts'
import { type SettingName, settingsTable } from '../../config/settings-table.ts'
import { ConfigurationError } from '../../src/errors.ts'
import { thrown } from './support/helpers.ts'

describe('settings', () => {
  it('are complete, frozen and embedded when nothing is set', () => {
    const settings = resolveSettings({}, {})
    expect(settings).to.deep.equal({
      databaseUrl: null,
      redisUrl: null,
      openaiApiKey: null,
      openaiBaseUrl: null,
      model: null,
      boardPassword: null,
      tablePrefix: 'threadmill_',
      redisPrefix: 'threadmill',
      claimTtlMs: 45_000,
      claimRenewMs: 10_000,
      sweepEveryMs: 1_000,
      shutdownGraceMs: 25_000,
      stuckAfterMs: 10_000,
      eventCoalesceMs: 40,
      completeConcurrency: 50,
      runToolsConcurrency: 20,
      compactConcurrency: 5,
      dataDir: resolve('.threadmill'),
      embedded: true,
      databasePool: 10,
    })
    expect(Object.isFrozen(settings)).to.equal(true)
  })

  it('prefer what code passes to the environment, and the environment to the default', () => {
    const env = { THREADMILL_CLAIM_TTL_MS: '30000', THREADMILL_COMPLETE_CONCURRENCY: '7' }
    const settings = resolveSettings({ claimTtlMs: 20_000 }, env)
    expect(settings.claimTtlMs).to.equal(20_000)
    expect(settings.completeConcurrency).to.equal(7)
    expect(settings.runToolsConcurrency).to.equal(20)
  })

  it('read every variable of the table', () => {
    const samples: Record<SettingName, [string, unknown]> = {
      databaseUrl: ['sqlite:a.db', 'sqlite:a.db'],
      redisUrl: ['redis://h', 'redis://h'],
      openaiApiKey: ['sk-1', 'sk-1'],
      openaiBaseUrl: ['http://localhost:1/v1', 'http://localhost:1/v1'],
      model: ['m', 'm'],
      tablePrefix: ['t_', 't_'],
      redisPrefix: ['r', 'r'],
      claimTtlMs: ['6000', 6_000],
      claimRenewMs: ['500', 500],
      sweepEveryMs: ['200', 200],
      shutdownGraceMs: ['0', 0],
      stuckAfterMs: ['2000', 2_000],
      eventCoalesceMs: ['9', 9],
      completeConcurrency: ['3', 3],
      runToolsConcurrency: ['4', 4],
      compactConcurrency: ['6', 6],
      dataDir: ['/data', '/data'],
      embedded: ['FALSE', false],
      boardPassword: ['pass word', 'pass word'],
      databasePool: ['5', 5],
    }
    const names = Object.keys(settingsTable) as SettingName[]
    const env = Object.fromEntries(names.map((name) => [settingsTable[name].env, samples[name][0]]))
    const settings = resolveSettings({}, env)
    for (const name of names) expect(settings[name], name).to.equal(samples[name][1])
    const options = Object.fromEntries(names.map((name) => [name, samples[name][1]])) as ConnectOptions
    expect(resolveSettings(options, {})).to.deep.equal(settings)
  })

  it('take a blank variable or option for a missing one, and trim the others', () => {
    const env = { DATABASE_URL: '  ', THREADMILL_MODEL: '', THREADMILL_CLAIM_TTL_MS: ' 5000 ' }
    const settings = resolveSettings({ redisUrl: ' ' }, env)
    expect(settings.databaseUrl).to.equal(null)
    expect(settings.redisUrl).to.equal(null)
    expect(settings.model).to.equal(null)
    expect(settings.claimTtlMs).to.equal(5_000)
  })

  it('renew a short claim four times in its life', () => {
    expect(resolveSettings({ claimTtlMs: 8_000 }, {}).claimRenewMs).to.equal(2_000)
  })

  it('report all problems of environment and code in one error, each by name', () => {
    const env = {
      DATABASE_URL: 'postgres://user:hunter2@host/db',
      REDIS_URL: 'http://:hunter3@host',
      OPENAI_API_KEY: 'sk hunter4',
      OPENAI_BASE_URL: 'ftp://hunter5',
      THREADMILL_TABLE_PREFIX: 'Bad-Prefix',
      THREADMILL_REDIS_PREFIX: 'a:b',
      THREADMILL_CLAIM_TTL_MS: '900',
      THREADMILL_SWEEP_EVERY_MS: 'often',
      THREADMILL_EMBEDDED: 'maybe',
      THREADMILL_DATABASE_POOL: '1.5',
    }
    const error = thrown(() => resolveSettings({ runToolsConcurrency: 0 }, env))
    expect(error).to.be.instanceOf(ConfigurationError)
    for (const name of [...Object.keys(env), 'runToolsConcurrency']) expect(error.message).to.include(name)
    expect(error.message).to.include('11 problems')
    expect(error.message).to.include('from 1000 to 60000')
    expect(error.message).to.include('"often"')
    expect(error.message).not.to.match(/hunter/)
    expect(thrown(() => readEnvironment(env)).message).to.include('10 problems')
  })

  it('refuse a renewal that comes too late to be repeated', () => {
    const message = thrown(() =>
      resolveSettings({}, { THREADMILL_CLAIM_TTL_MS: '9000', THREADMILL_CLAIM_RENEW_MS: '3001' }),
    ).message
    expect(message).to.include('THREADMILL_CLAIM_RENEW_MS').and.to.include('at most 3000')
    expect(thrown(() => resolveSettings({ claimTtlMs: 9_000, claimRenewMs: 3_001 }, {})).message).to.include(
      'option claimRenewMs',
    )
    expect(resolveSettings({ claimTtlMs: 9_000, claimRenewMs: 3_000 }, {}).claimRenewMs).to.equal(3_000)
  })

  it('refuse embedded services in production unless they are asked for', () => {
    const message = thrown(() => resolveSettings({}, { NODE_ENV: 'production' })).message
    expect(message).to.include('DATABASE_URL is missing').and.to.include('REDIS_URL is missing')
    expect(message).to.include('THREADMILL_EMBEDDED=true')
    const half = { NODE_ENV: 'production', DATABASE_URL: 'mysql://u:p@h/d' }
    expect(thrown(() => resolveSettings({}, half)).message)
      .to.include('REDIS_URL')
      .and.not.to.include('DATABASE_URL')
    expect(resolveSettings({ redisUrl: 'redis://h' }, half).embedded).to.equal(false)
    expect(resolveSettings({}, { NODE_ENV: 'production', THREADMILL_EMBEDDED: 'true' }).embedded).to.equal(true)
    expect(resolveSettings({}, { NODE_ENV: 'production' }, { database: true, redis: true }).databaseUrl).to.equal(null)
  })

  it('report a missing service beside other problems, and a wrong one only as wrong', () => {
    const env = { NODE_ENV: 'production', REDIS_URL: 'nonsense' }
    const message = thrown(() => resolveSettings({ claimTtlMs: 1 }, env)).message
    expect(message).to.include('3 problems').and.to.include('DATABASE_URL is missing')
    expect(message).to.include('option claimTtlMs').and.not.to.include('REDIS_URL is missing')
  })

  it('refuse embedded services that are switched off anywhere', () => {
    expect(thrown(() => resolveSettings({ embedded: false }, {})).message).to.include('switched off')
  })

  it('refuse a database in memory, because claims are renewed on a second connection', () => {
    const message = thrown(() => resolveSettings({ databaseUrl: 'sqlite::memory:' }, {})).message
    expect(message).to.include('databaseUrl').and.to.include('second connection')
  })
})
