import { join } from 'node:path'
import { resolveSettings } from '../../../config/settings.ts'
import { dropTables } from '../../../models/dropping.ts'
import { type ConnectOptions, Threadmill } from '../../threadmill.ts'
import { type ModelServer, startModelServer } from '../model-server.ts'
import { clearRedis } from './clear-redis.ts'
import type { LoadedApp } from './messages.ts'
import type { CheckedScenario } from './scenario.ts'
import { scripted } from './scripted-model.ts'
import type { RecordedWrite } from './trap.ts'
import { startWorkerProcess, type WorkerProcess, type WorkerProgram } from './worker-process.ts'

/** Where the crashes of a scenario take place. */
export interface Place {
  readonly scenario: CheckedScenario
  readonly program: WorkerProgram
  /** A folder that is removed at the end. */
  readonly folder: string
  /** Unique for this use of the kit: lower-case letters and digits. */
  readonly name: string
}

/** A worker process that takes jobs. */
export interface Working {
  readonly process: WorkerProcess
  readonly app: LoadedApp
  /** What it wrote while it had nothing to do. */
  readonly idle: readonly RecordedWrite[]
}

type LaneOptions = ConnectOptions & { readonly tablePrefix: string; readonly redisPrefix: string }

type Connected = Pick<Working, 'process' | 'app'>

/**
 * Tables, keys, a model server and worker processes for one crash after the other. Those of other lanes, and of the application, are
 * never touched: a worker takes whatever is due in its tables.
 */
export class Lane {
  readonly mill: Threadmill
  readonly model: ModelServer
  /** The file that executions of tools are written to. */
  readonly journal: string
  readonly #place: Place
  readonly #options: LaneOptions
  readonly #processes = new Set<WorkerProcess>()
  /** Loaded and connected, for the next crash; it has taken no job yet. */
  #next: Promise<Connected>
  #working: Working | null = null

  private constructor(place: Place, options: LaneOptions, mill: Threadmill, model: ModelServer) {
    this.#place = place
    this.#options = options
    this.mill = mill
    this.model = model
    this.journal = join(place.folder, `${options.redisPrefix}.journal`)
    this.#next = this.#connect()
  }

  /** Makes the tables and starts what a crash needs. */
  static async open(place: Place, number: number): Promise<Lane> {
    const { scenario, folder, name } = place
    const { connect } = scenario
    const model = await startModelServer({ respond: scripted(scenario.model) })
    try {
      const wanted = resolveSettings({ ...connect, dataDir: join(folder, 'data') })
      const options = {
        ...connect,
        // Processes that write to one file of SQLite wait for each other.
        databaseUrl: wanted.databaseUrl ?? `sqlite:${join(folder, `${number}.sqlite`)}`,
        dataDir: wanted.dataDir,
        tablePrefix: `crash_${name}_${number}_`,
        redisPrefix: `crash-${name}-${number}`,
        openaiBaseUrl: model.url,
        openaiApiKey: wanted.openaiApiKey ?? 'scripted',
        model: wanted.model ?? 'scripted',
      }
      return new Lane(place, options, await Threadmill.connect({ ...options, migrate: true }), model)
    } catch (error) {
      await model.close()
      throw error
    }
  }

  /** The worker process that takes jobs; another one after a death. */
  async worker(): Promise<Working> {
    if (this.#working?.process.isAlive) return this.#working
    const { process, app } = await this.#next
    await process.order({ kind: 'work' }, 'working')
    const { writes: idle } = await process.order({ kind: 'set', death: null }, 'set')
    this.#working = { process, app, idle }
    this.#next = this.#connect()
    return this.#working
  }

  /** Ends every process and removes every trace. */
  async close(): Promise<void> {
    await this.#next.catch(() => {})
    await Promise.all([...this.#processes].map((process) => process.kill()))
    await this.model.close()
    try {
      await dropTables(this.mill.sequelize, this.#options.tablePrefix)
    } finally {
      await this.mill.close()
    }
    await clearRedis(this.#place.scenario.connect, this.#options.redisPrefix)
  }

  #connect(): Promise<Connected> {
    const process = startWorkerProcess(this.#place.program)
    this.#processes.add(process)
    const { tablePrefix } = this.#options
    const order = {
      kind: 'connect',
      app: this.#place.scenario.app,
      options: this.#options,
      tablePrefix,
      journal: this.journal,
    } as const
    const connected = process.order(order, 'connected').then((app) => ({ process, app }))
    // Whoever waits for it is told.
    connected.catch(() => {})
    return connected
  }
}
