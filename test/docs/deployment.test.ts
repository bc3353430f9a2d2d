import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { parse } from 'yaml'
import { z } from 'zod'
import { type SettingName, settingsTable } from '../../config/settings-table.ts'
import { parseDatabaseUrl, parseRedisUrl } from '../../config/urls.ts'
import { Cli } from '../../src/cli/cli.ts'
import { makeProgram } from '../../src/cli/program.ts'
import { streamsOf } from '../cli/run-cli.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const known = new Set<string>(Object.values(settingsTable).map(({ env }) => env))

const service = z.object({
  image: z.string(),
  build: z.string().optional(),
  command: z.array(z.string()),
  environment: z.record(z.string(), z.string()).default({}),
  volumes: z.array(z.string()).default([]),
  ports: z.array(z.string()).default([]),
  healthcheck: z.object({ test: z.array(z.string()) }).optional(),
  depends_on: z.record(z.string(), z.object({ condition: z.string() })).default({}),
  deploy: z.object({ replicas: z.number() }).optional(),
  stop_grace_period: z.string().optional(),
})
const compose = z
  .object({ services: z.record(z.string(), service), volumes: z.record(z.string(), z.null()) })
  .parse(parse(read('compose.yaml'), { merge: true }))

const serviceOf = (name: string) => {
  const found = compose.services[name]
  if (found === undefined) throw new RangeError(`compose.yaml has no service ${name}`)
  return found
}
/** As compose fills it in, with nothing set but what has to be. */
const filledIn = (text: string) =>
  text.replace(/\$\{\w+(?::-([^}]*))?(?::\?[^}]*)?\}/g, (_, usual = 'a-secret') => usual)

/** The stages of the Dockerfile, each a list of instructions. */
const stages = read('Dockerfile')
  .split(/^(?=FROM )/m)
  .slice(1)
  .map((stage) => [...stage.matchAll(/^([A-Z]+) (.*)$/gm)].map(([, word = '', rest = '']) => ({ word, rest })))
const argumentsOf = (stage: number, word: string) =>
  stages[stage]?.filter((one) => one.word === word).map(({ rest }) => rest)

/** What the program says against a command, which is not run; null for nothing. */
async function complaintAbout(argv: readonly string[]): Promise<string | null> {
  const program = makeProgram(new Cli(streamsOf(false).io))
  for (const command of program.commands) command.action(() => {})
  return program.parseAsync(argv, { from: 'user' }).then(
    () => null,
    (error: unknown) => String(error),
  )
}

describe('compose.yaml', () => {
  it('runs commands that there are, with options that they have', async () => {
    for (const name of ['migrate', 'worker', 'board']) {
      const { command, build } = serviceOf(name)
      expect(build).to.equal('.')
      expect(await complaintAbout(command), command.join(' ')).to.equal(null)
    }
    expect(await complaintAbout(['worker', '--app', 'app.ts', '--compleet', '5'])).to.match(/unknown option/)
  })

  it('sets variables that there are, to values that they take', () => {
    for (const { build, environment } of Object.values(compose.services)) {
      if (build === undefined) continue
      expect([...known]).to.include.members(Object.keys(environment))
      for (const name of Object.keys(settingsTable) as SettingName[]) {
        const { env, schema } = settingsTable[name]
        const value = filledIn(environment[env] ?? '')
        if (value !== '') expect(schema.safeParse(value).success, `${env}=${value}`).to.equal(true)
      }
    }
  })

  it('leads the workers to its own database and Redis', () => {
    const { environment } = serviceOf('worker')
    const database = parseDatabaseUrl(filledIn(environment.DATABASE_URL ?? ''))
    const server = serviceOf('mysql').environment
    expect(database).to.include({ host: 'mysql', port: 3306, database: server.MYSQL_DATABASE, user: server.MYSQL_USER })
    expect(parseRedisUrl(environment.REDIS_URL ?? '')).to.deep.include({ nodes: [{ host: 'redis', port: 6379 }] })
  })

  it('has a Redis that neither evicts nor forgets', () => {
    const command = serviceOf('redis').command.join(' ')
    expect(command).to.include('--maxmemory-policy noeviction').and.to.include('--appendonly yes')
  })

  it('migrates before two workers start, and lets them end in peace', () => {
    const worker = serviceOf('worker')
    expect(worker.deploy?.replicas).to.equal(2)
    expect(worker.depends_on.migrate?.condition).to.equal('service_completed_successfully')
    const grace = Number(/^(\d+)s$/.exec(worker.stop_grace_period ?? '')?.[1]) * 1_000
    expect(grace).to.be.at.least(settingsTable.shutdownGraceMs.default + 10_000)
  })

  it('asks the port that the probe listens on', () => {
    const { command, healthcheck } = serviceOf('worker')
    const port = command[command.indexOf('--probe') + 1]?.split(':').at(-1)
    expect(healthcheck?.test.join(' ')).to.include(`http://127.0.0.1:${port}/ready`)
    expect(argumentsOf(1, 'EXPOSE')).to.deep.equal([port])
  })

  it('mounts files and volumes that there are, and names services that there are', () => {
    const names = Object.keys(compose.services)
    for (const { volumes, depends_on } of Object.values(compose.services)) {
      expect(names).to.include.members(Object.keys(depends_on))
      for (const [source = ''] of volumes.map((volume) => volume.split(':'))) {
        if (source.startsWith('.')) expect(existsSync(join(root, source)), source).to.equal(true)
        else expect(compose.volumes).to.have.property(source)
      }
    }
  })

  it('opens ports to this machine alone', () => {
    for (const { ports } of Object.values(compose.services))
      for (const port of ports) expect(port).to.match(/^127\.0\.0\.1:/)
  })
})

describe('The Dockerfile', () => {
  it('copies what there is, and what its build is let see', () => {
    const seen = read('.dockerignore').split('\n')
    for (const line of argumentsOf(0, 'COPY') ?? []) {
      for (const source of line.split(' ').slice(0, -1)) {
        const path = source.replace(/^\.\//, '')
        expect(existsSync(join(root, source)), source).to.equal(true)
        expect(seen).to.include(`!${path}`)
      }
    }
  })

  it('runs the program of the package, as nobody in particular, in production', async () => {
    const manifest = z.object({ bin: z.object({ threadmill: z.string() }) }).parse(JSON.parse(read('package.json')))
    expect(argumentsOf(1, 'ENTRYPOINT')).to.deep.equal([
      `["node", "node_modules/threadmill/${manifest.bin.threadmill}"]`,
    ])
    expect(argumentsOf(1, 'USER')).to.deep.equal(['node'])
    expect(argumentsOf(1, 'ENV')).to.deep.equal(['NODE_ENV=production'])
    const [command = '[]'] = argumentsOf(1, 'CMD') ?? []
    expect(await complaintAbout(z.array(z.string()).parse(JSON.parse(command)))).to.equal(null)
  })

  it('has a Node that the package takes', () => {
    for (const stage of [0, 1]) expect(argumentsOf(stage, 'FROM')?.[0]).to.match(/^node:20-slim\b/)
  })
})
