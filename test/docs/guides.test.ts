import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { execa } from 'execa'
import { type ModelServer, type Reply, startModelServer, text, toolCalls } from '../../src/testing/index.ts'
import { read, snippetsOf } from './snippets.ts'

const root = fileURLToPath(new URL('../../', import.meta.url)).replace(/\/$/, '')
const sources = ['--conditions=threadmill-source', '--import', 'tsx']

/** The files that a guide has its reader write. */
function filesOf(document: string): Map<string, string> {
  const files = new Map<string, string>()
  for (const { file, code } of snippetsOf(document, read(root, document))) if (file !== null) files.set(file, code)
  return files
}

describe('The guides', function () {
  this.timeout(180_000)
  let folder = ''
  let model: ModelServer

  const start = async (document: string, replies: readonly Reply[]): Promise<Record<string, string>> => {
    // Inside the project, so that its packages, and itself by name, are found. Git and the compiler leave dot folders out.
    folder = await mkdtemp(join(root, 'test/docs/.guide-'))
    for (const [file, code] of filesOf(document)) await writeFile(join(folder, file), code)
    model = await startModelServer({ respond: replies })
    return { DATABASE_URL: '', REDIS_URL: '', NODE_ENV: '', OPENAI_BASE_URL: model.url, OPENAI_API_KEY: 'test-key' }
  }
  afterEach(async () => {
    await model.close()
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  })

  it('lead from an empty folder to an answer of the first agent', async () => {
    const env = await start('docs/guides/first-agent.md', [
      toolCalls([{ name: 'shipment', arguments: { order: '42' } }]),
      text('It left the warehouse on Monday.'),
    ])
    const options = { cwd: folder, env, timeout: 150_000 }
    const cli = [...sources, join(root, 'src/cli/main.ts')]
    await execa(process.execPath, [...cli, 'migrate'], options)
    const worker = execa(process.execPath, [...cli, 'worker', '--app', 'app.ts', '--json'], options)
    try {
      const ready = new Promise<void>((resolve) => {
        worker.stdout.on('data', (chunk: Buffer) => {
          if (chunk.includes('"ready"')) resolve()
        })
      })
      await Promise.race([ready, worker])
      const { stdout } = await execa(process.execPath, [...sources, 'ask.ts'], options)
      expect(stdout).to.equal('shipment is called\nIt left the warehouse on Monday.')
    } finally {
      worker.kill('SIGTERM')
    }
    expect((await worker).exitCode).to.equal(0)
    expect(model.requests[1]?.messages.at(-1)?.content).to.equal('left the warehouse on Monday')
  })

  it('have a test of an application that passes', async () => {
    const env = await start('docs/guides/testing.md', [])
    const mocha = [...sources, join(root, 'node_modules/mocha/bin/mocha.js'), '--no-config', '--exit', 'shop.test.ts']
    const { stdout } = await execa(process.execPath, mocha, { cwd: folder, env, timeout: 150_000 })
    expect(stdout).to.match(/\b1 passing\b/)
  })

  it('have a test that kills workers, and passes (E110)', async () => {
    const env = await start('docs/guides/testing.md', [])
    const mocha = [...sources, join(root, 'node_modules/mocha/bin/mocha.js'), '--no-config', '--exit', 'refund.test.ts']
    const { stdout } = await execa(process.execPath, mocha, { cwd: folder, env, timeout: 290_000 })
    expect(stdout).to.match(/\b1 passing\b/)
  }).timeout(300_000)
})
