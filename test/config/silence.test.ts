import { expect } from 'chai'
import { type RedisConnector, redisConnector } from '../../config/redis.ts'
import { silentLooks } from '../../config/silence.ts'
import { startProxy } from '../events/proxy.ts'
import { itOnRealRedis } from '../support/real-redis.ts'
import { startRedisServer, type TestRedisServer } from '../support/redis-server.ts'
import { until } from '../support/until.ts'

describe('A connection to Redis that is silent', function () {
  this.timeout(30_000)
  let redis: TestRedisServer
  let proxy: Awaited<ReturnType<typeof startProxy>>
  let connector: RedisConnector
  const troubles: string[] = []
  before(async () => {
    redis = await startRedisServer()
  })
  beforeEach(async () => {
    proxy = await startProxy(redis.port)
    troubles.length = 0
    connector = redisConnector(
      { redisUrl: proxy.url },
      { lookEveryMs: 50, onTrouble: (error) => troubles.push(error.message) },
    )
  })
  afterEach(async () => {
    await connector.close()
    await proxy.close()
  })
  after(() => redis.stop())

  it('is made anew, and gives the answers that it owed, one that gave up waiting too (E131)', async () => {
    const [producer, lock] = await Promise.all([connector.producer(), connector.lock()])
    const worker = connector.openWorker()
    await worker.set('key', 'value')
    proxy.muteOpenConnections()
    expect(await lock.get('key').catch((error: Error) => error.message)).to.include('timed out')
    expect(await Promise.all([producer.get('key'), worker.get('key')])).to.deep.equal(['value', 'value'])
    const answer = () => lock.get('key').catch(() => null)
    await until('the one with a limit answers, too', async () => (await answer()) === 'value')
    const told = troubles.filter((message) => message.includes('answered nothing'))
    expect(told).to.have.length(3)
  })

  itOnRealRedis('is waited for while no other one is answered either (E131)', async () => {
    const [producer, lock] = await Promise.all([connector.producer(), connector.lock()])
    const clientId = await producer.client('ID')
    await lock.call('CLIENT', 'PAUSE', '2500', 'ALL')
    expect(await producer.client('ID')).to.equal(clientId)
    expect(troubles).to.deep.equal([])
  })

  it('is one that owes an answer and gave none at several looks in a row (E131)', () => {
    const heard = { isReady: true, isOwed: true, isAnswered: false }
    expect(silentLooks(2, heard)).to.equal(3)
    expect(silentLooks(2, { ...heard, isOwed: false })).to.equal(0)
    expect(silentLooks(2, { ...heard, isAnswered: true })).to.equal(0)
    expect(silentLooks(2, { ...heard, isReady: false })).to.equal(0)
  })
})
