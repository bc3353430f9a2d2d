import { type ChildProcess, spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect } from 'chai'
import { Redis } from 'ioredis'
import { startRedisServer, type TestRedisServer } from './redis-server.ts'

async function ping(url: string): Promise<string> {
  const client = new Redis(url, { retryStrategy: () => null, maxRetriesPerRequest: 0, lazyConnect: true })
  client.on('error', () => {})
  try {
    await client.connect()
    return await client.ping()
  } catch {
    return 'nobody'
  } finally {
    client.disconnect()
  }
}

/** A process that starts a server, tells its address and waits. */
function spawnOwner(): ChildProcess {
  const module = fileURLToPath(new URL('./redis-server.ts', import.meta.url))
  const script = `const { startRedisServer } = await import(${JSON.stringify(module)})
console.log((await startRedisServer()).url)`
  const loader = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href
  const options = ['--import', loader, '--input-type=module', '--eval', script]
  return spawn(process.execPath, options, { stdio: ['ignore', 'pipe', 'inherit'] })
}

const firstLine = (child: ChildProcess): Promise<string> =>
  new Promise((done) => child.stdout?.once('data', (data: Buffer) => done(data.toString().trim())))

describe('the Redis server of tests', () => {
  const path = process.env.PATH
  let server: TestRedisServer | undefined

  afterEach(async () => {
    process.env.PATH = path
    await server?.stop()
    server = undefined
  })

  async function livesAndDies(): Promise<void> {
    server = await startRedisServer()
    const { url } = server
    expect(await ping(url)).to.equal('PONG')
    await server.kill()
    expect(await ping(url)).to.equal('nobody')
    await server.restart()
    expect(await ping(url)).to.equal('PONG')
    await server.restart()
    expect(await ping(url)).to.equal('PONG')
    await Promise.all([server.stop(), server.stop()])
    expect(await ping(url)).to.equal('nobody')
  }

  it('starts, dies, comes back on its port and stops', livesAndDies)

  it('does so without a redis-server on PATH', async () => {
    process.env.PATH = '/nowhere'
    await livesAndDies()
  })

  it('ends with its process, even when that is killed', async () => {
    const owner = spawnOwner()
    const url = await firstLine(owner)
    expect(await ping(url)).to.equal('PONG')
    owner.kill('SIGKILL')
    while ((await ping(url)) !== 'nobody') await new Promise((done) => setTimeout(done, 10))
  })
})
