import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { embeddedDatabaseUrl } from '../../../config/database.ts'
import { embedded } from '../../../config/embedded/index.ts'
import { resolveSettings, type Settings } from '../../../config/settings.ts'
import { ConfigurationError, type ConnectOptions, Threadmill } from '../../index.ts'
import { demoModelName } from '../../testing/demo-model.ts'
import { startDemoModel } from '../../testing/start-demo-model.ts'
import { demoAgent } from './agent.ts'
import type { Closers } from './closers.ts'
import { makeWorkerProcess } from './worker-processes.ts'

/** A running demo. */
export interface Session {
  readonly mill: Threadmill
  /** Rejects when no worker process is left to answer. */
  readonly workersGone: Promise<never>
}

const workerCount = 2
const defaultModel = 'gpt-4o-mini'
/** What a move gets to end by itself; a person is waiting for the prompt. */
const graceMs = 3_000
const killAfterMs = 8_000

/**
 * Starts everything that a demo runs on and that the environment does not name, and two worker processes. What is started
 * is added to `closers`, also when this fails half-way.
 * @param note told, in a line each, what is used.
 * @throws {ConfigurationError} {UnreachableError} and whatever else `Threadmill.connect` throws.
 */
export async function startSession(closers: Closers, note: (line: string) => void): Promise<Session> {
  const settings = resolveSettings()
  const workers = Array.from({ length: workerCount }, () => makeWorkerProcess())
  const stopWorkers = () => Promise.all(workers.map((worker) => worker.stop(killAfterMs)))
  await closers.add(stopWorkers)
  const [services, model] = await allOf([startServices(settings, closers, note), chooseModel(settings, closers, note)])
  const options: ConnectOptions = { ...services, ...model, shutdownGraceMs: graceMs }
  const mill = await Threadmill.connect({ ...options, agents: [demoAgent], migrate: true })
  await closers.add(() => mill.close())
  // Again, and so before what they are connected to.
  await closers.add(stopWorkers)
  await allOf(workers.map((worker) => worker.start(options)))
  note(`Workers: processes ${workers.map((worker) => worker.pid).join(' and ')}.`)
  const workersGone = Promise.all(workers.map((worker) => worker.ended)).then((ends) => {
    throw new ConfigurationError(`No worker process is left (${ends.join(', ')}): start the demo again.`)
  })
  // At the end of the demo they go on purpose, and nobody listens any more.
  workersGone.catch(() => {})
  return { mill, workersGone }
}

/**
 * A Redis of this demo's own: it ends with the process that started it, so a second demo in the same folder must not
 * depend on it. The database is the folder's: chats outlive their demo.
 */
async function startServices(settings: Settings, closers: Closers, note: (line: string) => void) {
  const databaseUrl = settings.databaseUrl ?? embeddedDatabaseUrl(settings.dataDir)
  if (settings.databaseUrl === null) {
    await mkdir(settings.dataDir, { recursive: true, mode: 0o700 })
    note(`Database: SQLite in ${settings.dataDir}.`)
  }
  if (settings.redisUrl !== null) return { databaseUrl, redisUrl: settings.redisUrl }
  const dataDir = await mkdtemp(join(tmpdir(), 'threadmill-demo-'))
  await closers.add(() => rm(dataDir, { recursive: true, force: true, maxRetries: 3 }))
  const services = await embedded({ databaseUrl, redisUrl: null, dataDir }, { onNotice: note })
  await closers.add(() => services.stop())
  return { databaseUrl, redisUrl: services.redisUrl }
}

async function chooseModel(
  { openaiApiKey, openaiBaseUrl, model }: Settings,
  closers: Closers,
  note: (line: string) => void,
): Promise<Pick<ConnectOptions, 'openaiApiKey' | 'openaiBaseUrl' | 'model'>> {
  if (openaiApiKey === null && openaiBaseUrl === null) {
    const server = await startDemoModel()
    await closers.add(() => server.stop())
    note(
      `Model: ${demoModelName}, a stand-in on this machine that follows fixed rules. Set OPENAI_API_KEY for a real one.`,
    )
    return { openaiBaseUrl: server.url, model: demoModelName }
  }
  const where = openaiBaseUrl === null ? 'OpenAI' : new URL(openaiBaseUrl).host
  const why = model === null ? ' (the default; THREADMILL_MODEL names another)' : ''
  note(`Model: ${model ?? defaultModel} at ${where}${why}.`)
  return {
    openaiApiKey: openaiApiKey ?? undefined,
    openaiBaseUrl: openaiBaseUrl ?? undefined,
    model: model ?? defaultModel,
  }
}

/** Like `Promise.all`, but waits for every one of them before it fails, so that what started can be ended. */
async function allOf<const Work extends readonly Promise<unknown>[]>(
  work: Work,
): Promise<{ -readonly [Key in keyof Work]: Awaited<Work[Key]> }> {
  await Promise.allSettled(work)
  return Promise.all(work)
}
