import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { z } from 'zod'
import { UnreachableError } from '../../src/errors.ts'
import {
  type Address,
  addressSchema,
  ask,
  isAlive,
  isServing,
  readAddress,
  removeAddress,
  type ServerKind,
} from './address.ts'
import { exclusively } from './lock.ts'

/** What the start of an embedded Redis reports. */
export interface StartRedisOptions {
  /** Told, in a sentence, which server was started and what it can't do. Not told when a running one is shared. */
  readonly onNotice: (message: string) => void
}

/** A use of an embedded Redis. When its server ends before it does, another is started on the same port. */
export interface EmbeddedRedis {
  /** For `redisUrl`. */
  readonly url: string
  readonly kind: ServerKind
  /** True when another process started it: the server then ends with that process, not with {@link stop}. */
  readonly shared: boolean
  /** Gives the use back. The server ends, and its address goes, with the last use in the process that started it. Safe to call again. */
  stop(): Promise<void>
}

/** A server that this process started. */
interface Owned {
  readonly address: Address
  readonly child: ChildProcess
  uses: number
}

/** One server serves all applications of this process that share a data directory. */
const owned = new Map<string, Owned>()

const START_MS = 20_000
/** More than the child allows itself. */
const STOP_MS = 12_000
const ORPHAN_MS = 3_000
/** How often a use looks whether its server lives. */
const WATCH_MS = 500

/**
 * Gives the embedded Redis of a data directory: the one that another living process, or this one, already serves there,
 * else a new one. The new one is `redis-server` or `valkey-server` from PATH, else a server in JavaScript. It listens on
 * 127.0.0.1 alone and ends with this process, however that ends. Throws UnreachableError when no server can be started.
 */
export async function startRedis(dataDir: string, { onNotice }: StartRedisOptions): Promise<EmbeddedRedis> {
  const directory = resolve(dataDir)
  await mkdir(directory, { recursive: true, mode: 0o700 })
  return exclusively(directory, async () => {
    const known = await readAddress(directory)
    if (known && (await isServing(known))) return use(directory, known, onNotice)
    if (known) await retire(directory, known)
    return use(directory, await start(directory, onNotice), onNotice)
  })
}

function use(directory: string, served: Address, onNotice: (message: string) => void): EmbeddedRedis {
  let address = served
  let own = hold(directory, address)
  let stopped: Promise<void> | undefined
  let reviving: Promise<void> | null = null
  // The server ends with the process that started it, and the clients of all the others only know its port.
  const watch = setInterval(() => {
    if (isAlive(address.ownerPid) && isAlive(address.serverPid)) return
    reviving ??= revive()
      .catch((error: Error) => onNotice(`Redis: the private one ended. ${error.message}`))
      .finally(() => {
        reviving = null
      })
  }, WATCH_MS).unref()

  const revive = () =>
    exclusively(directory, async () => {
      if (stopped !== undefined) return
      const known = await readAddress(directory)
      const served = known !== null && (await isServing(known))
      if (known && !served) await retire(directory, known)
      address = known && served ? known : await start(directory, onNotice, address.port)
      own = hold(directory, address)
    })

  const stop = async () => {
    clearInterval(watch)
    await reviving
    const held = own
    if (held && --held.uses === 0) await exclusively(directory, () => end(directory, held))
  }
  return {
    url: `redis://127.0.0.1:${address.port}/0`,
    kind: address.kind,
    shared: own === undefined,
    stop() {
      stopped ??= stop()
      return stopped
    },
  }
}

/** Counts a use of a server that this process started; undefined for another's. */
function hold(directory: string, { serverPid }: Address): Owned | undefined {
  const mine = owned.get(directory)
  if (mine?.address.serverPid !== serverPid) return undefined
  mine.uses++
  return mine
}

/** Ends a server that this process started, unless someone in it began to use it while this waited for its turn. */
async function end(directory: string, own: Owned): Promise<void> {
  if (own.uses > 0) return
  if (owned.get(directory) === own) owned.delete(directory)
  if (own.child.exitCode !== null || own.child.signalCode !== null) return
  const exited = once(own.child, 'exit')
  own.child.ref()
  own.child.stdin?.end()
  const timer = setTimeout(() => killBoth(own), STOP_MS)
  await exited
  clearTimeout(timer)
  await removeAddress(directory, own.address.serverPid)
}

/** For a stop that hangs. The server goes first: as long as the process that started it lives, its number is its own. */
function killBoth({ address, child }: Owned): void {
  if (isAlive(address.serverPid)) process.kill(address.serverPid, 'SIGKILL')
  child.kill('SIGKILL')
}

/**
 * Makes room where an address is no good any more: a server whose owner died is about to end; one that doesn't, because
 * what should end it was killed too, is ended here, if it says of itself that it is that process.
 */
async function retire(directory: string, { port, serverPid }: Address): Promise<void> {
  const deadline = performance.now() + ORPHAN_MS
  // A port that is silent means that the server is gone, or stands still, or that its number is another process's now.
  while (isAlive(serverPid) && performance.now() < deadline && (await ask(port, 'PING')) !== '') await wait(50)
  const itself = new RegExp(`^process_id:${serverPid}\\r?$`, 'm')
  if (isAlive(serverPid) && itself.test(await ask(port, 'INFO server'))) {
    process.kill(serverPid, 'SIGTERM')
    while (isAlive(serverPid) && performance.now() < deadline + ORPHAN_MS) await wait(50)
  }
  await removeAddress(directory, serverPid)
}

/** `port`: where it should listen if it can. */
async function start(directory: string, onNotice: (message: string) => void, port = 0): Promise<Address> {
  const child = spawnServer(directory, port)
  const line = await firstLine(child)
  const { address, failures } = line === null ? silent : answerSchema.parse(JSON.parse(line))
  if (address === null) {
    child.stdin?.end()
    child.kill()
    throw new UnreachableError(
      `No embedded Redis could be started: set REDIS_URL, or install redis-server.\n${failures.join('\n')}`,
    )
  }
  // A forgotten stop() must not keep the application from ending.
  child.unref()
  for (const stream of [child.stdin, child.stdout]) (stream as unknown as { unref(): void }).unref()
  owned.set(directory, { address, child, uses: 0 })
  onNotice(notice(address.kind, address.port, failures))
  if (port !== 0 && address.port !== port) {
    onNotice(`Redis: port ${port} is taken, so processes that use it have to be started again.`)
  }
  return address
}

const answerSchema = z.object({ address: addressSchema.nullable(), failures: z.array(z.string()) })
const silent: z.infer<typeof answerSchema> = { address: null, failures: ['the process that starts it did not answer'] }

function notice(kind: ServerKind, port: number, failures: readonly string[]): string {
  const where = `on 127.0.0.1:${port}`
  if (kind !== 'js-redis-server') return `Redis: a private ${kind} ${where}.`
  return [
    `Redis: a stand-in written in JavaScript ${where}. It is slow (tens of jobs a second) and forgets everything when it ends;`,
    'chats are safe in the database. Install redis-server, or set REDIS_URL, for real work.',
    `Tried before: ${failures.join('; ')}.`,
  ].join(' ')
}

function spawnServer(directory: string, port: number): ChildProcess {
  const script = new URL(`./redis-child${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url)
  const words = [fileURLToPath(script), directory, String(process.pid), String(port)]
  const child = spawn(process.execPath, [...loader(script), ...words], {
    stdio: ['pipe', 'pipe', 'ignore'],
    // In a group of its own, so that Ctrl-C in a terminal reaches the application, which still needs Redis to shut down.
    detached: true,
  })
  // Writing to it is only ever its end, and that it is gone already is no news.
  child.stdin.on('error', () => {})
  return child
}

/** What runs a script that is still TypeScript. */
function loader(script: URL): string[] {
  if (!script.pathname.endsWith('.ts')) return []
  return ['--import', pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href]
}

/** The first line that a process writes, or null if it ends, or is silent for too long, before that. */
function firstLine(child: ChildProcess): Promise<string | null> {
  return new Promise((done) => {
    let output = ''
    const timer = setTimeout(() => done(null), START_MS)
    const settle = (line: string | null) => {
      clearTimeout(timer)
      done(line)
    }
    child.once('error', () => settle(null))
    child.once('close', () => settle(null))
    child.stdout?.on('data', (data: Buffer) => {
      output += data.toString()
      const newline = output.indexOf('\n')
      if (newline >= 0) settle(output.slice(0, newline))
    })
  })
}
