import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { exclusively } from '../../config/embedded/lock.ts'

/** The programs that tests start as processes, as plain JavaScript: they start several times faster than from sources. */
export interface Bundle {
  /** The demo, as `src/cli/demo.ts`. */
  readonly demo: string
  /** The arguments for `node` that start a worker with an app: a source file in a folder `apps`, which exports `agents`. */
  worker(app: string): string[]
  /** The file of a program of its own, one of the list below. */
  program(file: string): string
}

const root = fileURLToPath(new URL('../../', import.meta.url))
const cache = join(root, 'node_modules/.cache/threadmill-tests')
const keptMs = 24 * 3_600_000

/** Native, not made for being bundled, or asked for only by what is not used here. */
const external = [
  ...['libsql', 'js-redis-server', 'umzug'],
  ...['pg', 'pg-hstore', 'tedious', 'oracledb', 'ibm_db', 'snowflake-sdk', 'mariadb', 'sqlite3'],
]

/** All in one folder: what starts another of them looks for it beside itself. */
const programs = [
  'test/support/worker-entry.ts',
  'src/only-process.ts',
  'src/cli/demo.ts',
  'src/cli/demo/worker.ts',
  'src/claims/renewal-thread.ts',
  'src/testing/demo-server.ts',
  'src/testing/crashes/crash-worker.ts',
  'test/chaos/chaos-worker.ts',
  'config/embedded/redis-child.ts',
  'test/chat/apps/dies-before-commit.ts',
  'test/models/apps/migrate.ts',
  'test/leaks/programs/leak-traffic.ts',
  'test/leaks/programs/leak-cycles.ts',
  'test/leaks/programs/leak-idle.ts',
]

/** What modules that were written for `require` expect to find. */
const banner = [
  "import { createRequire as makeRequire } from 'node:module'",
  "import { dirname as folderOf } from 'node:path'",
  "import { fileURLToPath as pathOf } from 'node:url'",
  'const require = makeRequire(import.meta.url)',
  'const __filename = pathOf(import.meta.url)',
  'const __dirname = folderOf(__filename)',
].join('\n')

let bundled: Promise<Bundle> | undefined

/** Bundles them, unless this or another process did since the last change of a source. */
export function bundle(): Promise<Bundle> {
  bundled ??= make()
  return bundled
}

async function make(): Promise<Bundle> {
  const sources = await readSources()
  const folder = join(cache, hashOf(sources))
  await mkdir(cache, { recursive: true })
  await exclusively(cache, async () => {
    if (existsSync(folder)) return
    await removeOld()
    const unfinished = `${folder}.${process.pid}`
    await write(unfinished, sources)
    // Whole or not at all, whenever this process is ended.
    await rename(unfinished, folder)
  })
  return {
    demo: join(folder, 'demo.js'),
    program: (file) => join(folder, `${nameOf(file)}.js`),
    worker: (app) => [join(folder, 'worker-entry.js'), join(folder, `${nameOf(app)}.js`)],
  }
}

async function write(folder: string, sources: ReadonlyMap<string, string>): Promise<void> {
  const apps = [...sources].flatMap(([path, text]) => (isApp(path, text) ? [path] : []))
  await build({
    entryPoints: [...programs, ...apps].map((path) => ({ in: join(root, path), out: nameOf(join(root, path)) })),
    outdir: folder,
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    conditions: ['threadmill-source'],
    external,
    banner: { js: banner },
    logLevel: 'error',
  })
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
}

/** A program keeps its name; an app is named by its place among the tests. */
function nameOf(file: string): string {
  const path = relative(root, file).split(sep).join('/').replace(/\.ts$/, '')
  return path.includes('/apps/') ? path.replaceAll('/', '-') : path.slice(path.lastIndexOf('/') + 1)
}

function isApp(path: string, text: string): boolean {
  return dirname(path).endsWith('/apps') && /^export const agents\b/m.test(text)
}

/** Every file that may become part of a bundle, with its text, by its path from the root. */
async function readSources(): Promise<Map<string, string>> {
  const folders = ['config', 'models', 'src', 'workers', 'test']
  const listed = await Promise.all(
    folders.map(async (folder) =>
      (await readdir(join(root, folder), { recursive: true })).map((name) => `${folder}/${name.split(sep).join('/')}`),
    ),
  )
  // The documents' snippets come and go while their tests run.
  const paths = listed.flat().filter((path) => path.endsWith('.ts') && !path.includes('/.'))
  const files = [...paths.toSorted(), 'package-lock.json']
  return new Map(
    await Promise.all(files.map(async (path) => [path, await readFile(join(root, path), 'utf8')] as const)),
  )
}

function hashOf(sources: ReadonlyMap<string, string>): string {
  const hash = createHash('sha256')
  for (const [path, text] of sources) hash.update(`${path}\0${text}\0`)
  return hash.digest('hex').slice(0, 16)
}

/** Those of sources that nobody has any more; a younger one may be in use by a run that began before the last change. */
async function removeOld(): Promise<void> {
  for (const name of await readdir(cache)) {
    const path = join(cache, name)
    const { mtimeMs } = await stat(path)
    if (name !== 'redis.lock' && Date.now() - mtimeMs > keptMs) await rm(path, { recursive: true, force: true })
  }
}
