import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join, normalize } from 'node:path'
import { expect } from 'chai'
import { execa } from 'execa'
import { compile, setUps } from './consumers.ts'
import { type Installed, install, plainEnvironment, root } from './installed.ts'
import { anyTypes, topLevelAwaits } from './syntax.ts'

/** A whole application on embedded services: its claim is renewed by the thread, its rows go through the dialect. */
const app = `
import { defineAgent, Threadmill } from 'threadmill'
import { startModelServer, text } from 'threadmill/testing'

const model = await startModelServer({ respond: text('Hello from the package.') })
const mill = await Threadmill.connect({
  agents: [defineAgent({ name: 'greeter' })],
  openaiBaseUrl: model.url,
  openaiApiKey: 'test-key',
  model: 'scripted',
  migrate: true,
})
const asked = await mill.chats.create({ agent: 'greeter' })
console.log((await asked.ask('Hello'))?.content)

mill.startWorkers({ complete: 1 })
const posted = await mill.chats.create({ agent: 'greeter' })
await posted.askLater('Hello', { enqueue: true })
for await (const event of posted.events({ after: '0' })) {
  if (event.type === 'run.finished' || event.type === 'run.failed') break
}
console.log((await posted.messages()).map(({ role }) => role).join())
await mill.close()
await model.close()
`

/** What `threadmill worker` is given; CommonJS to Node, since the application's manifest says nothing else. */
const agents = `
import { defineAgent, type Agent } from 'threadmill'
const greeter: Agent = defineAgent({ name: 'greeter' })
export default { agents: [greeter] }
`

/** Kills a worker process of those agents at one write. */
const crashes = `
import { killAtEveryWrite, text } from 'threadmill/testing'
const { outcomes } = await killAtEveryWrite({
  app: new URL('./agents.ts', import.meta.url),
  model: [text('Hello from the package.')],
  drive: (chat) => chat.askLater('Hello', { enqueue: true }),
  only: ({ statement }) => /^INSERT INTO messages/.test(statement),
})
for (const { died, end, requests } of outcomes) console.log(died, end, requests.length)
`

const entries = ['threadmill', 'threadmill/testing', 'threadmill/migrations']

/** What takes part in the start of every process; whatever else is loaded with its first use. */
const loadedAtOnce = [
  'big.js',
  'bullmq',
  'eventsource-parser',
  'ioredis',
  'p-limit',
  'redlock',
  'safe-stable-stringify',
  'sequelize',
  'uuid',
  'zod',
]

describe('The published package', function () {
  this.timeout(300_000)
  let installed: Installed

  before(async () => {
    installed = await install()
  })
  after(() => installed?.remove())

  const read = (file: string) => readFile(join(installed.package, file), 'utf8')
  const start = (program: string, args: readonly string[]) =>
    execa(program, args, { cwd: installed.folder, env: plainEnvironment(), extendEnv: false, timeout: 120_000 })
  const run = async (program: string, args: readonly string[]) => start(program, args)

  it('holds what was built, its sources and its documents, and no test', () => {
    const { files } = installed
    expect(files).to.include.members(['dist/src/index.js', 'src/index.ts', 'README.md', 'LICENSE', 'CHANGELOG.md'])
    const expected =
      /^((dist|config|models|src|workers|docs|examples)\/|(README|LICENSE|CHANGELOG|CONTRIBUTING|SECURITY|Dockerfile|compose|package)\b)/
    expect(files.filter((file) => !expected.test(file))).to.deep.equal([])
    expect(files.filter((file) => /(^|\/)test\/|\.test\./.test(file))).to.deep.equal([])
  })

  it('names no path of the machine that it was built on', async () => {
    const paths = [root.replace(/\/$/, ''), `${homedir()}/`, 'file:///']
    for (const file of installed.files) {
      const text = await read(file)
      expect(
        paths.filter((path) => text.includes(path)),
        file,
      ).to.deep.equal([])
    }
  })

  it('leads from each map to a source, and from each link of its documents to a file', async () => {
    const missing: string[] = []
    for (const file of installed.files) {
      const targets = file.endsWith('.map')
        ? (JSON.parse(await read(file)) as { sources: string[] }).sources
        : file.endsWith('.md')
          ? [...(await read(file)).matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)].map((link) => link[1] ?? '')
          : []
      for (const target of targets) {
        const path = normalize(join(dirname(file), target))
        if (!existsSync(join(installed.package, path))) missing.push(`${file}: ${path}`)
      }
    }
    expect(missing).to.deep.equal([])
  })

  it('is imported and required, as one and the same', async () => {
    const script = `for (const name of ${JSON.stringify(entries)}) {
      const required = require(name)
      import(name).then((imported) => console.log(name, imported === required, Object.keys(imported).length > 0))
    }`
    await writeFile(join(installed.folder, 'both.cjs'), script)
    const { stdout, stderr } = await run(process.execPath, ['both.cjs'])
    expect(stdout.split('\n').toSorted()).to.deep.equal(entries.map((name) => `${name} true true`).toSorted())
    expect(stderr).to.equal('')
  })

  it('waits nowhere while it is loaded', async () => {
    expect(topLevelAwaits('async () => { await 1 }\nconst one = 1\nawait one')).to.deep.equal([3])
    for (const file of installed.files.filter((name) => /^dist\/.*\.js$/.test(name))) {
      expect(topLevelAwaits(await read(file)), file).to.deep.equal([])
    }
  })

  it('loads no library before it is needed', async () => {
    const hook = 'export const load = (url, context, next) => (process._rawDebug(url), next(url, context))'
    const url = (code: string) => `data:text/javascript,${encodeURIComponent(code)}`
    const register = url(`import { register } from 'node:module'; register(${JSON.stringify(url(hook))})`)
    const args = ['--import', register, '--input-type=module', '--eval', "import 'threadmill'"]
    const { stderr } = await run(process.execPath, args)
    const names = [...stderr.matchAll(/\/node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*\/node_modules\/)/g)].map(
      (match) => match[1] ?? '',
    )
    const { dependencies } = JSON.parse(await read('package.json')) as { dependencies: Record<string, string> }
    const own = names.map((name) => name.replace('@sesamecare-oss/', '')).filter((name) => name in dependencies)
    expect([...new Set(own)].toSorted()).to.deep.equal(loadedAtOnce)
  })

  it('has `any` in none of its types', async () => {
    expect(anyTypes('/** any */\nexport declare const one: any')).to.deep.equal([2])
    for (const file of installed.files.filter((name) => /^dist\/.*\.d\.ts$/.test(name))) {
      expect(anyTypes(await read(file)), file).to.deep.equal([])
    }
  })

  for (const setUp of setUps) {
    it(`type-checks for ${setUp.name}`, async () => {
      const complaints = await compile(installed.folder, setUp)
      // Sequelize's own declarations do not hold under every strict option.
      const ours = complaints.filter(({ file }) => !/\/node_modules\/(?!threadmill\/)/.test(file))
      expect(ours).to.deep.equal([])
    })
  }

  it('runs an application: the thread, the child processes and the dialect of what was built', async () => {
    await writeFile(join(installed.folder, 'app.mjs'), app)
    const { stdout } = await run(process.execPath, ['app.mjs'])
    expect(stdout).to.equal('Hello from the package.\nuser,assistant')
  })

  it('has the command, which makes the tables and runs the agents of a TypeScript file', async () => {
    const { stdout } = await run('npx', ['--no-install', 'threadmill', '--help'])
    expect(stdout).to.match(/^Usage: threadmill /m)
    const command = join(installed.folder, 'node_modules/.bin/threadmill')
    await run(command, ['migrate'])
    await writeFile(join(installed.folder, 'agents.ts'), agents)
    const worker = start(command, ['worker', '--app', 'agents.ts'])
    worker.stdout.on('data', (part: Buffer) => {
      if (part.toString().includes('"msg":"ready"')) worker.kill('SIGTERM')
    })
    const { stdout: log } = await worker
    expect(log).to.include('"msg":"ready"').and.to.include('"msg":"closed"')
  })

  it('kills worker processes of what was built, which load agents of a TypeScript file (E110, E116)', async () => {
    await writeFile(join(installed.folder, 'agents.ts'), agents)
    await writeFile(join(installed.folder, 'crashes.mjs'), crashes)
    const { stdout } = await run(process.execPath, ['crashes.mjs'])
    expect(stdout).to.equal('true answered 2')
  })

  it('passes publint and, for ES modules, attw', async () => {
    const tool = (name: string) => join(root, 'node_modules/.bin', name)
    await run(tool('publint'), ['run', installed.tarball, '--strict'])
    // CommonJS gets the ES modules by Node's own require, which is what attw reports for them.
    await run(tool('attw'), [installed.tarball, '--profile', 'esm-only', '--no-emoji', '--no-color'])
  })
})
