/*
 * The process between an application and its embedded Redis. Its standard input is a pipe that the application holds:
 * when the pipe closes, because the application stopped the server or because it died, however it died, this process
 * ends the server, removes its address and exits. It tries one kind of server after the other. Arguments: the data
 * directory, the pid of the owner, and the port to listen on if it is free; 0 for any.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { createServer, Server } from 'node:net'
import { join } from 'node:path'
import { UnreachableError } from '../../src/errors.ts'
import { type Address, removeAddress, type ServerKind, serverKinds, writeAddress } from './address.ts'

const TRIES = 5
const READY_MS = 15_000
const STOP_MS = 5_000
const KEPT_OUTPUT = 4_000

interface Running {
  readonly kind: ServerKind
  readonly port: number
  readonly pid: number
  /** Resolves when the server ended by itself. */
  readonly ended: Promise<unknown>
  stop(): Promise<void>
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  await new Promise((done) => server.close(done))
  return typeof address === 'object' && address ? address.port : 0
}

/** Starts a server program from PATH and waits for its own word that it is ready, not for the port, which anyone may answer. */
async function startProgram(
  program: Exclude<ServerKind, 'js-redis-server'>,
  dataDir: string,
  wanted: number,
): Promise<Running> {
  const directory = join(dataDir, 'redis')
  await mkdir(directory, { recursive: true, mode: 0o700 })
  let failure = ''
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const port = attempt === 0 && wanted > 0 ? wanted : await freePort()
    const server = spawn(program, serverArguments(port, directory), { stdio: ['ignore', 'pipe', 'pipe'] })
    const ended = new Promise((done) => server.once('close', done))
    failure = await untilReady(server)
    if (failure === '')
      return { kind: program, port, pid: server.pid ?? 0, ended, stop: () => stopProgram(server, ended) }
    server.kill('SIGKILL')
    // Between the look for a free port and now, someone else may have taken it.
    if (!/Address already in use|Failed listening/i.test(failure)) break
  }
  throw new UnreachableError(failure)
}

function serverArguments(port: number, directory: string): string[] {
  const settings = {
    port: String(port),
    bind: '127.0.0.1',
    'protected-mode': 'yes',
    dir: directory,
    appendonly: 'yes',
    appendfsync: 'everysec',
    save: '',
    daemonize: 'no',
    'maxmemory-policy': 'noeviction',
  }
  return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])
}

/** Resolves to '' once the server says that it is ready, else to what went wrong. */
function untilReady(server: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    let output = ''
    const read = (data: Buffer) => {
      output = (output + data.toString()).slice(-KEPT_OUTPUT)
      if (/Ready to accept connections/i.test(output)) settle('')
    }
    const settle = (failure: string) => {
      clearTimeout(timer)
      // The pipes have to be emptied for as long as the server writes to them.
      for (const stream of [server.stdout, server.stderr]) stream?.off('data', read).resume()
      resolve(failure)
    }
    const timer = setTimeout(() => settle(`not ready within ${READY_MS} ms. ${output}`), READY_MS)
    server.stdout?.on('data', read)
    server.stderr?.on('data', read)
    server.once('error', (error: NodeJS.ErrnoException) =>
      settle(error.code === 'ENOENT' ? 'not on PATH' : error.message),
    )
    server.once('close', (code) => settle(`ended with ${code}. ${output}`))
  })
}

async function stopProgram(server: ChildProcess, ended: Promise<unknown>): Promise<void> {
  server.kill('SIGTERM')
  const timer = setTimeout(() => server.kill('SIGKILL'), STOP_MS)
  await ended
  clearTimeout(timer)
}

/** The server in JavaScript, inside this process. It would listen on every interface, so listening is narrowed first. */
async function startScript(wanted: number): Promise<Running> {
  const listen = Server.prototype.listen as (this: Server, ...input: unknown[]) => Server
  Server.prototype.listen = function (this: Server, ...input: unknown[]) {
    const [port, ...rest] = input
    const callback = rest.filter((argument) => typeof argument === 'function')
    return typeof port === 'number'
      ? listen.call(this, { port, host: '127.0.0.1' }, ...callback)
      : listen.apply(this, input)
  } as Server['listen']
  const { createRedisServer } = await import('js-redis-server')
  const server = await createRedisServer({ port: wanted }).catch(() => createRedisServer({ port: 0 }))
  const bound = 'port' in server ? server.port : 0
  return {
    kind: 'js-redis-server',
    port: bound,
    pid: process.pid,
    ended: new Promise(() => {}),
    // It keeps nothing, and closing would wait for those who are still connected: it ends with this process.
    stop: async () => {},
  }
}

/** The first kind of server that starts, or null; what kept the others from it is added to `failures`. */
async function startAny(dataDir: string, wanted: number, failures: string[]): Promise<Running | null> {
  for (const kind of serverKinds) {
    try {
      return kind === 'js-redis-server' ? await startScript(wanted) : await startProgram(kind, dataDir, wanted)
    } catch (error) {
      failures.push(`${kind}: ${error instanceof Error ? error.message.trim() : String(error)}`)
    }
  }
  return null
}

/** One line of JSON to the application. */
function tell(address: Address | null, failures: readonly string[]): void {
  process.stdout.write(`${JSON.stringify({ address, failures })}\n`)
}

async function main(): Promise<void> {
  const [dataDir = '', ownerPid = '0', port = '0'] = process.argv.slice(2)
  const orphaned = new Promise((done) =>
    process.stdin.once('close', done).once('end', done).once('error', done).resume(),
  )
  const signalled = new Promise((done) => process.once('SIGTERM', done).once('SIGINT', done))
  // A line that can't be written any more must not end this process before the server.
  process.stdout.on('error', () => {})
  const failures: string[] = []
  const running = await startAny(dataDir, Number(port), failures)
  if (!running) {
    tell(null, failures)
    // It goes once the application has read the line.
    await orphaned
    return
  }
  const { kind, pid } = running
  const address = { kind, port: running.port, ownerPid: Number(ownerPid), serverPid: pid }
  await writeAddress(dataDir, address)
  tell(address, failures)
  await Promise.race([orphaned, signalled, running.ended])
  // The address goes last: until then, whoever wants a server here waits for this one to let go of its files.
  await Promise.race([running.stop(), new Promise((done) => setTimeout(done, 2 * STOP_MS).unref())])
  await removeAddress(dataDir, pid)
}

void main().then(() => process.exit(0))
