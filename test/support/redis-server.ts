import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants } from 'node:fs'
import { connect, createServer } from 'node:net'
import { delimiter, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/** A private Redis of one test file. It keeps nothing on disk, and ends with this process, however that ends. */
export interface TestRedisServer {
  readonly url: string
  readonly port: number
  /** Ends it for good. Safe to call again. */
  stop(): Promise<void>
  /** Ends it, if it still runs, and starts it again on the same port, empty. */
  restart(): Promise<void>
  /** Ends it as a crash would; `restart` brings it back. */
  kill(): Promise<void>
}

const READY_MS = 20_000
const PORT_TRIES = 5

/** Starts `redis-server` from PATH on a free port of 127.0.0.1, else js-redis-server, and waits until it answers. The settings are for the former. */
export async function startRedisServer(settings: readonly string[] = []): Promise<TestRedisServer> {
  let child: ChildProcess | null = null
  let port = 0
  for (let left = PORT_TRIES; child === null; left--) {
    port = await freePort()
    child = await launch(port, left === 1, settings)
  }

  const kill = async () => {
    if (child) await end(child)
    child = null
  }
  return {
    url: `redis://127.0.0.1:${port}/0`,
    port,
    stop: kill,
    kill,
    async restart() {
      await kill()
      child = await launch(port, true, settings)
    },
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  await new Promise((done) => server.close(done))
  return typeof address === 'object' && address ? address.port : 0
}

/** Resolves to null when the server ended by itself, as it does when the port was taken meanwhile. */
async function launch(port: number, must: boolean, more: readonly string[]): Promise<ChildProcess | null> {
  const child = isOnPath('redis-server') ? spawnReal(port, more) : spawnScript(port)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (data: Buffer) => {
      output = (output + data.toString()).slice(-2_000)
    })
  }
  // The server alone holds its end of this pipe, so it closes when the server is gone.
  let gone = false
  child.stdout?.once('close', () => {
    gone = true
  })
  const deadline = performance.now() + READY_MS
  while (!gone && performance.now() < deadline) {
    // Someone else's server may answer at the port, so this one has to have said that it listens, too.
    if (/ready to accept connections/i.test(output) && (await answersPing(port))) return child
    await wait(10)
  }
  await end(child)
  if (must) throw new Error(`No Redis for tests came up at port ${port}: ${output}`)
  return null
}

function isOnPath(program: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/**
 * A shell stands between: it ends the server when its standard input closes, which happens even when this process is
 * killed.
 */
function spawnReal(port: number, more: readonly string[]): ChildProcess {
  const script = 'redis-server "$@" & server=$!; exec >/dev/null 2>&1; read -r _; kill -9 $server; wait $server'
  const settings = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', ...more]
  return spawn('/bin/sh', ['-c', script, 'sh', ...settings], { stdio: ['pipe', 'pipe', 'pipe'] })
}

function spawnScript(port: number): ChildProcess {
  const script = fileURLToPath(new URL('./js-redis-server.mjs', import.meta.url))
  return spawn(process.execPath, [script, String(port)], { stdio: ['pipe', 'pipe', 'pipe'] })
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.stdin?.on('error', () => {})
  child.stdin?.end()
  await exited
}

/** Whether a server answers at a port. */
function answersPing(port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'))
    const settle = (answered: boolean) => {
      socket.destroy()
      done(answered)
    }
    socket.setTimeout(1_000, () => settle(false))
    socket.once('error', () => settle(false))
    socket.once('data', (data) => settle(data.toString().startsWith('+PONG')))
  })
}
