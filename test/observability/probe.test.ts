import { expect } from 'chai'
import { ConfigurationError, type Probe } from '../../src/index.ts'
import { gate, text } from '../../src/testing/index.ts'
import { sqlite } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { errorFrom } from '../tools/rows.ts'

describe('The probe of a process', () => {
  const bench = useBench(sqlite, { claimTtlMs: 45_000 })
  beforeEach(async function () {
    this.currentTest?.timeout(60_000)
    await bench.redis.restart()
  })

  async function serving(options: Parameters<typeof bench.connect>[0] = {}) {
    const mill = await bench.connect(options)
    const pool = mill.startWorkers({ complete: 1, runTools: 1 })
    await pool.ready()
    const probe = await mill.serveProbe({ port: 0 })
    return { mill, pool, probe }
  }

  async function ask(probe: Probe, path: string, method = 'GET') {
    const response = await fetch(`${probe.url}${path}`, { method })
    const body = await response.text()
    const json = response.headers.get('content-type') === 'application/json'
    return { status: response.status, body, checks: json && body !== '' ? JSON.parse(body).checks : null }
  }

  const well = { database: 'ok', redis: 'ok', renewal: 'ok', workers: 'ok', process: 'ok' }

  it('says that it lives and takes work', async () => {
    const { probe } = await serving()
    expect(probe.url).to.equal(`http://127.0.0.1:${probe.port}`)
    expect(await ask(probe, '/live')).to.deep.include({ status: 200, checks: { renewal: 'ok', workers: 'ok' } })
    await until('it is ready', async () => (await ask(probe, '/ready')).status === 200)
    expect((await ask(probe, '/ready')).checks).to.deep.equal(well)
  })

  it('is not ready while Redis is away, lives all the same, and is ready again when Redis is back', async () => {
    const { probe } = await serving()
    await bench.redis.kill()
    const away = await until('it is not ready', async () => {
      const answer = await ask(probe, '/ready')
      return answer.status === 503 && answer.checks.workers !== 'ok' ? answer : null
    })
    expect(away.checks).to.include({ database: 'ok', redis: 'unreachable', workers: 'connecting' })
    expect((await ask(probe, '/live')).status).to.equal(200)
    await bench.redis.restart()
    await until('it is ready', async () => (await ask(probe, '/ready')).status === 200)
  })

  it('is not ready without its database, or with tables that miss a step, and names no secret', async () => {
    const { mill, probe } = await serving()
    const { sequelize } = mill.models.Chat as unknown as { sequelize: { query(sql: string): Promise<unknown> } }
    await until('it is ready', async () => (await ask(probe, '/ready')).status === 200)
    await sequelize.query("UPDATE threadmill_migrations SET name = name || ' not' WHERE name LIKE '0001%'")
    try {
      expect(await ask(probe, '/ready')).to.deep.include({ status: 503, checks: { ...well, database: 'not migrated' } })
    } finally {
      await sequelize.query("UPDATE threadmill_migrations SET name = REPLACE(name, ' not', '')")
    }
    const query = sequelize.query
    sequelize.query = () => Promise.reject(new Error('Access denied for user with hunter2'))
    const answer = await ask(probe, '/ready')
    sequelize.query = query
    expect(answer).to.deep.include({ status: 503, checks: { ...well, database: 'unreachable' } })
    expect(answer.body).not.to.contain('hunter2')
  })

  it('is not ready from the moment it is told to close, answers until the last move ended, and then not at all', async () => {
    const held = gate(text('Here I am.'))
    await bench.script([held])
    const { mill, probe } = await serving()
    const chat = await mill.chats.create()
    await chat.askLater('Hello?', { enqueue: true })
    await held.reached
    const closing = mill.close()
    expect(await ask(probe, '/ready')).to.deep.include({
      status: 503,
      checks: { ...well, workers: 'closing', process: 'closing' },
    })
    expect((await ask(probe, '/live')).status).to.equal(200)
    held.release()
    await closing
    expect(await errorFrom(() => ask(probe, '/live'))).to.be.instanceOf(TypeError)
  })

  it('is not ready once its workers are closed, until others are started; a process without any needs none (E151)', async () => {
    const { mill, pool, probe } = await serving()
    await pool.close()
    expect((await ask(probe, '/ready')).checks).to.include({ workers: 'closed' })
    await mill.startWorkers().ready()
    expect((await ask(probe, '/ready')).checks).to.include({ workers: 'ok' })
    const web = await (await bench.connect()).serveProbe({ port: 0 })
    const { status, checks } = await ask(web, '/ready')
    expect(status).to.equal(200)
    expect(checks).not.to.have.property('workers')
  })

  it('does not live while the thread that renews claims is hung', async () => {
    const { mill, probe } = await serving()
    const real = Date.now
    let minutes = 0
    try {
      // As if nothing had been heard of the thread for a minute, also where it is heard of right now.
      Date.now = () => real() + ++minutes * 60_000
      expect(await ask(probe, '/live')).to.deep.include({ status: 503, checks: { renewal: 'hung', workers: 'ok' } })
    } finally {
      Date.now = real
    }
    await until('the thread is heard of', async () => (await ask(probe, '/live')).status === 200)
    await mill.close()
  })

  it('serves metrics where they are counted', async () => {
    const counting = await serving({ metrics: true })
    const { status, body } = await ask(counting.probe, '/metrics')
    expect(status).to.equal(200)
    expect(body).to.contain('# TYPE threadmill_claims_held gauge')
    const silent = await serving()
    expect((await ask(silent.probe, '/metrics')).status).to.equal(404)
    expect(await errorFrom(() => silent.mill.metrics())).to.be.instanceOf(ConfigurationError)
  })

  it('answers nothing else', async () => {
    const { probe } = await serving()
    expect((await ask(probe, '/')).status).to.equal(404)
    expect((await ask(probe, '/live', 'POST')).status).to.equal(405)
    expect(await ask(probe, '/live', 'HEAD')).to.deep.include({ status: 200, body: '' })
  })

  it('says which port it can’t have', async () => {
    const { mill, probe } = await serving()
    const error = await errorFrom(() => mill.serveProbe({ port: probe.port }))
    expect(error).to.be.instanceOf(ConfigurationError)
    expect((error as Error).message)
      .to.contain(String(probe.port))
      .and.to.contain('EADDRINUSE')
  })
})
