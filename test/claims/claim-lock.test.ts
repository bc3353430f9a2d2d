import { expect } from 'chai'
import { Redis } from 'ioredis'
import { redisConnector } from '../../config/redis.ts'
import { type ClaimLock, claimLock } from '../../src/claims/claim-lock.ts'
import { startRedisServer, type TestRedisServer } from '../support/redis-server.ts'
import { until } from '../support/until.ts'

const ttlMs = 30_000

describe('The Redis half of a claim', function () {
  this.timeout(60_000)
  let server: TestRedisServer | undefined
  let closing: (() => Promise<unknown>)[] = []
  let told: string[] = []

  before(async () => {
    server = await startRedisServer()
  })
  after(() => server?.stop())
  beforeEach(() => {
    told = []
  })
  afterEach(async () => {
    await Promise.all(closing.map((close) => close()))
    closing = []
    await present().restart()
  })

  function present(): TestRedisServer {
    if (server === undefined) throw new Error('There is no Redis yet')
    return server
  }

  /** The lock as one process has it. */
  async function lockOf({ db = 0, ttl = ttlMs } = {}): Promise<ClaimLock> {
    const redis = redisConnector({ redisUrl: present().url.replace(/\/0$/, `/${db}`) })
    closing.push(() => redis.close())
    return claimLock(await redis.lock(), {
      prefix: 'app',
      ttlMs: ttl,
      db: redis.db,
      observe: ({ type }) => told.push(type),
    })
  }

  function client(db = 0): Redis {
    const redis = new Redis(present().port, '127.0.0.1', { db })
    redis.on('error', () => {})
    closing.push(async () => redis.disconnect())
    return redis
  }

  it('is held by one of many processes at a time, per chat', async () => {
    const locks = await Promise.all(Array.from({ length: 8 }, () => lockOf()))
    const got = await Promise.all(locks.map((lock, at) => lock.acquire('chat', `claim ${at}`)))
    expect(got.filter(Boolean)).to.have.length(1)
    expect(await locks[0]?.acquire('other chat', 'another claim')).to.equal(true)
    expect(told).to.eql([])
  })

  it('is free again at once when it is released, for another process too', async () => {
    const [one, other] = [await lockOf(), await lockOf()]
    expect(await one.acquire('chat', 'first')).to.equal(true)
    expect(await other.acquire('chat', 'second')).to.equal(false)
    await other.release('second')
    expect(await other.acquire('chat', 'second'), 'a release by one that lacks it changes nothing').to.equal(false)
    await one.release('first')
    expect(await other.acquire('chat', 'second')).to.equal(true)
  })

  it('lapses by itself after its ttl, and is moved forward by a renewal', async () => {
    const [one, other] = [await lockOf({ ttl: 2_000 }), await lockOf()]
    const redis = client()
    await one.acquire('chat', 'claim')
    const left = () => redis.pttl('app:claim:{chat}')
    expect(await left()).to.be.within(1, 2_000)
    await until('half of the ttl is gone', async () => (await left()) < 1_000)
    await until('there is more of it again', async () => {
      one.renew('claim', 2_000)
      return (await left()) > 1_200
    })
    await until('it lapsed', async () => (await left()) < 0)
    expect(await other.acquire('chat', 'next')).to.equal(true)
  })

  it('lives no longer than what is left of its claim, and is taken again once it has lapsed (E140, E141)', async () => {
    const lock = await lockOf({ ttl: 30_000 })
    const redis = client()
    await lock.acquire('chat', 'claim')
    lock.renew('claim', 400)
    await until('it has been moved', async () => (await redis.pttl('app:claim:{chat}')) <= 400)
    await until('it lapsed', async () => (await redis.exists('app:claim:{chat}')) === 0)
    lock.renew('claim', 0)
    await until('a later renewal takes it', async () => {
      lock.renew('claim', 5_000.5)
      return (await redis.exists('app:claim:{chat}')) === 1
    })
    expect(await redis.pttl('app:claim:{chat}')).to.be.within(1, 5_000)
  })

  it('is kept in the database of Redis that the address names', async () => {
    const lock = await lockOf({ db: 3 })
    await lock.acquire('chat', 'claim')
    expect(await client(3).exists('app:claim:{chat}')).to.equal(1)
    expect(await client(0).exists('app:claim:{chat}')).to.equal(0)
  })

  it('stands in nobody’s way while Redis is away: the database decides alone, which is logged', async () => {
    const [one, other] = [await lockOf(), await lockOf()]
    await present().kill()
    expect(await one.acquire('chat', 'first')).to.equal(true)
    expect(await other.acquire('chat', 'second')).to.equal(true)
    expect(told).to.have.length(2)
    expect(told[0]).to.equal('lock.missing')
    one.renew('first', ttlMs)
    await one.release('first')
    await other.release('second')
  })

  it('is taken once Redis is back, by the renewal of a claim that began without it', async () => {
    const [one, other] = [await lockOf(), await lockOf()]
    await present().kill()
    expect(await one.acquire('chat', 'first')).to.equal(true)
    await present().restart()
    const redis = client()
    await until('a renewal takes the lock', async () => {
      one.renew('first', ttlMs)
      return (await redis.exists('app:claim:{chat}')) === 1
    })
    await until('the other process is turned away', async () => !(await other.acquire('chat', 'second')))
    await one.release('first')
    expect(await redis.exists('app:claim:{chat}')).to.equal(0)
  })

  it('is taken again by the next renewal after a FLUSHALL (S12)', async () => {
    const [one, other] = [await lockOf(), await lockOf()]
    await one.acquire('chat', 'first')
    const redis = client()
    await redis.flushall()
    one.renew('first', ttlMs)
    await until('the lock is back', async () => (await redis.exists('app:claim:{chat}')) === 1)
    expect(await other.acquire('chat', 'second')).to.equal(false)
    await one.release('first')
    expect(await other.acquire('chat', 'second')).to.equal(true)
  })

  it('leaves the lock to whoever got it after a FLUSHALL, when it renews and when it releases', async () => {
    const [one, other, third] = [await lockOf(), await lockOf(), await lockOf()]
    await one.acquire('chat', 'first')
    const redis = client()
    await redis.flushall()
    expect(await other.acquire('chat', 'second')).to.equal(true)
    const value = await redis.get('app:claim:{chat}')
    one.renew('first', ttlMs)
    await one.release('first')
    expect(await redis.get('app:claim:{chat}')).to.equal(value)
    expect(await third.acquire('chat', 'third')).to.equal(false)
  })

  it('gives back a lock that a renewal took while the claim was being released', async () => {
    const lock = await lockOf()
    const redis = client()
    for (let time = 0; time < 20; time++) {
      await lock.acquire('chat', `claim ${time}`)
      await redis.flushall()
      lock.renew(`claim ${time}`, ttlMs)
      await lock.release(`claim ${time}`)
      await until('nobody holds it', async () => (await redis.exists('app:claim:{chat}')) === 0)
    }
    lock.renew('claim 3', ttlMs)
    expect(await (await lockOf()).acquire('chat', 'next')).to.equal(true)
  })
})
