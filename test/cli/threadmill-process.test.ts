import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { defineAgent } from '../../src/index.ts'
import { gate, text } from '../../src/testing/index.ts'
import { sqlite } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { environmentOf } from './run-cli.ts'

const loader = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href
const entry = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))
const program = ['--import', loader, entry]
const app = join(import.meta.dirname, 'apps/plain.ts')
const support = defineAgent({ name: 'support' })
const limitMs = 100_000
const run = promisify(execFile)

describe('threadmill in a process of its own', function () {
  this.timeout(120_000)
  const bench = useBench(sqlite)
  let children: ChildProcess[] = []
  afterEach(async () => {
    const alive = children.filter((child) => child.exitCode === null && child.signalCode === null)
    await Promise.all(
      alive.map((child) => {
        const ended = once(child, 'exit')
        child.kill('SIGKILL')
        return ended
      }),
    )
    children = []
  })

  async function startWorker(file: string, ...more: string[]) {
    const child = spawn(process.execPath, [...program, 'worker', '--app', file, ...more], {
      env: { ...process.env, ...environmentOf(bench.options()) },
    })
    children.push(child)
    let out = ''
    child.stdout.on('data', (part: Buffer) => {
      out += part.toString()
    })
    child.stderr.on('data', (part: Buffer) => {
      out += part.toString()
    })
    const ended = once(child, 'close').then(([code]) => code as number | null)
    const early = ended.then((code) => `it ended with ${code}: ${out}`)
    const ready = until('it is ready', () => out.includes('"msg":"ready"'), limitMs).then(() => 'ready')
    expect(await Promise.race([ready, early])).to.equal('ready')
    return { ended, kill: (signal: NodeJS.Signals) => void child.kill(signal), out: () => out }
  }

  it('runs chats from a .ts file, closes at SIGTERM, and leaves no process waiting', async () => {
    await bench.script(text('hello'))
    const worker = await startWorker(app)
    const mill = await bench.connect({ agents: [support] })
    const chat = await mill.chats.create({ agent: support })
    await chat.askLater('help', { enqueue: true })
    await until('it answers', () => chat.isComplete(), limitMs)
    worker.kill('SIGTERM')
    expect(await worker.ended).to.equal(0)
    expect(worker.out()).to.include('"msg":"closed"')
  })

  it('ends at once with a second SIGINT, and the chat is taken over later', async () => {
    const held = gate(text('hello'))
    await bench.script(held)
    const folder = await mkdtemp(join(tmpdir(), 'threadmill-app-'))
    const file = join(folder, 'app.cjs')
    await writeFile(file, `module.exports = require(${JSON.stringify(app)}).default`)
    const worker = await startWorker(file)
    const mill = await bench.connect({ agents: [support] })
    const chat = await mill.chats.create({ agent: support })
    await chat.askLater('help', { enqueue: true })
    await held.reached
    worker.kill('SIGINT')
    await until('it is closing', () => worker.out().includes('"msg":"closing"'), limitMs)
    const insist = setInterval(() => worker.kill('SIGINT'), 50)
    expect(await worker.ended).to.equal(130)
    clearInterval(insist)
    expect(worker.out()).not.to.include('"msg":"closed"')
    held.release()
    expect((await chat.diagnosis()).advice.act).to.equal('nothing')
    await rm(folder, { recursive: true, force: true })
  })

  for (const shell of ['bash', 'zsh']) {
    it(`writes a script for ${shell} that asks the program itself`, async () => {
      const { stdout, stderr } = await run(process.execPath, [...program, 'completions', shell])
      expect(stderr).to.equal('')
      expect(stdout).to.match(/threadmill complete -- /)
      if (shell === 'bash') await run('bash', ['-n', '-c', stdout])
    })
  }

  it('completes the names of commands and options', async () => {
    const complete = async (...words: string[]) => {
      const { stdout } = await run(process.execPath, [...program, 'complete', '--', ...words])
      return stdout.split('\n').map((line) => line.split('\t')[0])
    }
    expect(await complete('wor')).to.include('worker')
    expect(await complete('worker', '--log-')).to.include('--log-level')
  })
})
