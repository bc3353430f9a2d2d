import { type ConnectOptions, Threadmill } from '../../src/index.ts'
import { type ModelServer, type Respond, startModelServer } from '../../src/testing/index.ts'
import type { DatabaseKind, TestDatabase } from './databases.ts'
import { startRedisServer, type TestRedisServer } from './redis-server.ts'

/** Real parts for one suite: a database, a Redis of its own, and a model server that each test scripts. */
export interface Bench {
  readonly database: TestDatabase
  readonly redis: TestRedisServer
  /** The model server of the test that runs; its script is given by `script`. */
  readonly model: ModelServer
  /** Starts a model server with this script in place of the last one; its url is what later `connect`s use. */
  script(respond: Respond): Promise<ModelServer>
  /** A connection as one process would have it; closed after the test. */
  connect(options?: ConnectOptions): Promise<Threadmill>
  /** The options that `connect` uses, for other processes. */
  options(): ConnectOptions
}

/**
 * Sets up the parts in hooks of the suite that calls it: database and Redis once, connections and model servers per test.
 * Retries between runs are quick only where a test waits for them itself; `claimTtlMs` is short so that takeovers are.
 */
export function useBench(kind: DatabaseKind, defaults: ConnectOptions = {}): Bench {
  let database: TestDatabase | undefined
  let redis: TestRedisServer | undefined
  let model: ModelServer | undefined
  let models: ModelServer[] = []
  let mills: Threadmill[] = []
  const present = <T>(part: T | undefined, name: string): T => {
    if (part === undefined) throw new Error(`The bench has no ${name} yet: use it inside tests`)
    return part
  }

  before(async function () {
    this.timeout(60_000)
    database = await kind.create()
    redis = await startRedisServer()
    const mill = await Threadmill.connect({ databaseUrl: database.url, redisUrl: redis.url, migrate: true })
    await mill.close()
  })
  afterEach(async function () {
    this.timeout(60_000)
    await Promise.all(mills.map((mill) => mill.close()))
    await Promise.all(models.map((server) => server.close()))
    mills = []
    models = []
    model = undefined
  })
  after(async () => {
    await redis?.stop()
    await database?.drop()
  })

  const options = (): ConnectOptions => ({
    databaseUrl: present(database, 'database').url,
    redisUrl: present(redis, 'Redis').url,
    openaiApiKey: 'test-key',
    ...(model === undefined ? {} : { openaiBaseUrl: model.url }),
    model: 'test-model',
    claimTtlMs: 1_500,
    sweepEveryMs: 200,
    ...defaults,
  })
  return {
    get database() {
      return present(database, 'database')
    },
    get redis() {
      return present(redis, 'Redis')
    },
    get model() {
      return present(model, 'model server')
    },
    async script(respond) {
      model = await startModelServer({ respond })
      models.push(model)
      return model
    },
    async connect(overrides = {}) {
      const mill = await Threadmill.connect({ ...options(), ...overrides })
      mills.push(mill)
      return mill
    },
    options,
  }
}
