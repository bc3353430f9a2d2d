import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdir } from 'node:fs/promises'
import { createServer } from 'node:net'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createConnection } from 'mysql2/promise'
import type { Janitor } from './janitor.ts'

/** A private MariaDB. What it has committed outlives a restart. */
export interface MariaDb {
  readonly port: number
  /** Ends it as a crash would. */
  kill(): Promise<void>
  /** Starts it again, and resolves when it answers. */
  start(): Promise<void>
}

const run = promisify(execFile)
const upWithinMs = 60_000
const path = `${process.env.PATH}:/usr/sbin`

/** Makes a database of its own in the folder, with an empty schema of this name, and starts it on a free port. */
export async function startMariaDb(folder: string, schema: string, janitor: Janitor): Promise<MariaDb> {
  const data = join(folder, 'mariadb')
  await mkdir(data)
  const user = await ownerOf(folder, data)
  const env = { ...process.env, PATH: path }
  const common = ['--no-defaults', `--user=${user}`, `--datadir=${data}`]
  await run('mariadb-install-db', [...common, '--auth-root-authentication-method=normal', '--skip-test-db'], {
    env,
  }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    throw new Error('There is no MariaDB here: install mariadb-server, or give --database sqlite.')
  })
  const port = await freePort()
  const settings = [
    ...[...common, '--bind-address=127.0.0.1', `--port=${port}`, `--socket=${join(data, 'socket')}`],
    // What is committed outlives the process, as it has to; the machine itself does not crash here.
    ...[`--pid-file=${join(data, 'pid')}`, '--innodb-flush-log-at-trx-commit=2', '--skip-name-resolve'],
    ...['--performance-schema=off', '--innodb-buffer-pool-size=64M', '--innodb-log-file-size=16M'],
  ]
  let child: ChildProcess | null = null
  let output = ''
  const start = async () => {
    const started = spawn('mariadbd', settings, { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
    child = started
    if (started.pid !== undefined) janitor.watch(started.pid)
    for (const stream of [started.stdout, started.stderr]) {
      stream.on('data', (part: Buffer) => {
        output = (output + part.toString()).slice(-4_000)
      })
    }
    await answers(
      port,
      () => started.exitCode !== null || started.signalCode !== null,
      () => output,
    )
  }
  await start()
  const connection = await createConnection({ host: '127.0.0.1', port, user: 'root' })
  await connection.query(`CREATE DATABASE ${schema}`)
  await connection.end()
  return {
    port,
    start,
    async kill() {
      if (child === null || child.exitCode !== null || child.signalCode !== null) return
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
      if (child.pid !== undefined) janitor.forget(child.pid)
    },
  }
}

/** Run as root it gives up unless it is told whose rights to take. */
async function ownerOf(folder: string, data: string): Promise<string> {
  const { uid, username } = userInfo()
  if (uid !== 0) return username
  const ids = await Promise.all(['-u', '-g'].map((flag) => run('id', [flag, 'mysql'])))
  const [user = 0, group = 0] = ids.map(({ stdout }) => Number(stdout))
  await chown(data, user, group)
  await chmod(folder, 0o711)
  return 'mysql'
}

async function answers(port: number, isGone: () => boolean, output: () => string): Promise<void> {
  const begun = performance.now()
  for (;;) {
    try {
      const connection = await createConnection({ host: '127.0.0.1', port, user: 'root', connectTimeout: 2_000 })
      await connection.end()
      return
    } catch (error) {
      if (isGone() || performance.now() - begun > upWithinMs) {
        throw new Error(`MariaDB did not come up at port ${port}: ${output()}`, { cause: error })
      }
      await wait(25)
    }
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  await new Promise((done) => server.close(done))
  return typeof address === 'object' && address ? address.port : 0
}
