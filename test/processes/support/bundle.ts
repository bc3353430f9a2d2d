import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

/** A worker process's program as plain JavaScript: it starts several times faster than from sources. */
export interface Bundle {
  /** The arguments for `node` that start a worker with an app of `test/processes/apps`, named without its ending. */
  command(app: string): string[]
  remove(): Promise<void>
}

const root = fileURLToPath(new URL('../../../', import.meta.url))
const apps = join(root, 'test/processes/apps')

/** Native, or asked for only by what is not used here. */
const external = ['libsql', 'pg', 'pg-hstore', 'tedious', 'oracledb', 'ibm_db', 'snowflake-sdk', 'mariadb', 'sqlite3']

/** What modules that were written for `require` expect to find. */
const banner = [
  "import { createRequire as makeRequire } from 'node:module'",
  "import { dirname as folderOf } from 'node:path'",
  "import { fileURLToPath as pathOf } from 'node:url'",
  'const require = makeRequire(import.meta.url)',
  'const __filename = pathOf(import.meta.url)',
  'const __dirname = folderOf(__filename)',
].join('\n')

/** Bundles the worker entry, the thread that renews claims, and every app, with what they share in files of its own. */
export async function bundleWorkers(): Promise<Bundle> {
  const folder = await mkdtemp(join(tmpdir(), 'threadmill-workers-'))
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  const sources = (await readdir(apps)).filter((name) => name.endsWith('.ts'))
  await build({
    entryPoints: [
      { in: join(root, 'test/support/worker-entry.ts'), out: 'worker-entry' },
      // The renewer looks for it beside itself.
      { in: join(root, 'src/claims/renewal-thread.ts'), out: 'renewal-thread' },
      ...sources.map((name) => ({ in: join(apps, name), out: `app-${basename(name, '.ts')}` })),
    ],
    outdir: folder,
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    external,
    banner: { js: banner },
    logLevel: 'error',
  })
  return {
    command: (app) => [join(folder, 'worker-entry.js'), join(folder, `app-${app}.js`)],
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}
