import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import * as z from 'zod'

/** An application of its own that has nothing but the package, as it would be published, and what that depends on. */
export interface Installed {
  readonly folder: string
  readonly tarball: string
  /** The package within the application. */
  readonly package: string
  /** Paths of the package's files in it, with `/`. */
  readonly files: readonly string[]
  remove(): Promise<void>
}

export const root = fileURLToPath(new URL('../../', import.meta.url))
const manifestSchema = z.object({ bin: z.record(z.string(), z.string()).default({}) })
const lockSchema = z.object({
  packages: z.record(z.string(), z.object({ dev: z.boolean().default(false), version: z.string().optional() })),
})

/** An environment in which nothing of these tests decides what a program does. */
export function plainEnvironment(): Record<string, string | undefined> {
  const ours = /^(NODE_OPTIONS$|NODE_ENV$|DATABASE_URL$|REDIS_URL$|OPENAI_|THREADMILL_|TEST_DATABASE_URL$|npm_)/
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !ours.test(name)))
}

/**
 * Builds, packs and installs. The real installation takes half a minute and a registry, so it is left to full runs; else
 * the package is unpacked beside links to what the lock file says that it needs, and sees no more than that.
 */
export async function install(): Promise<Installed> {
  const base = await mkdtemp(join(tmpdir(), 'threadmill-package-'))
  const folder = join(base, 'app')
  await mkdir(folder)
  await writeFile(join(folder, 'package.json'), '{ "private": true }')
  const env = plainEnvironment()
  const packed = await execa('npm', ['pack', '--silent', '--pack-destination', base], {
    cwd: root,
    env,
    extendEnv: false,
  })
  const tarball = join(base, packed.stdout.trim().split('\n').at(-1) ?? '')
  if (process.env.THREADMILL_FULL === '1') {
    const flags = ['--prefer-offline', '--no-audit', '--no-fund', '--no-progress']
    await execa('npm', ['install', tarball, ...flags], { cwd: folder, env, extendEnv: false })
  } else {
    await link(folder, tarball)
  }
  const installed = join(folder, 'node_modules/threadmill')
  const entries = await readdir(installed, { recursive: true, withFileTypes: true })
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(installed.length + 1))
    .map((path) => path.split(sep).join('/'))
    .filter((path) => !path.startsWith('node_modules/'))
  return {
    folder,
    tarball,
    package: installed,
    files,
    remove: () => rm(base, { recursive: true, force: true, maxRetries: 5 }),
  }
}

async function link(folder: string, tarball: string): Promise<void> {
  const modules = join(folder, 'node_modules')
  const own = join(modules, 'threadmill')
  await mkdir(own, { recursive: true })
  await execa('tar', ['-xzf', tarball, '-C', own, '--strip-components=1'])
  const { packages } = lockSchema.parse(JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')))
  const present = new Set(await packagesIn(join(root, 'node_modules')))
  for (const [path, { dev }] of Object.entries(packages)) {
    const name = /^node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path)?.[1]
    if (name === undefined || dev || !present.has(name)) continue
    await mkdir(dirname(join(modules, name)), { recursive: true })
    await symlink(join(root, 'node_modules', name), join(modules, name), 'junction')
  }
  const { bin } = manifestSchema.parse(JSON.parse(await readFile(join(own, 'package.json'), 'utf8')))
  await mkdir(join(modules, '.bin'))
  for (const [name, script] of Object.entries(bin)) {
    // As npm does: a command that is not there is no command.
    if (!existsSync(join(own, script))) continue
    await chmod(join(own, script), 0o755)
    await symlink(join('../threadmill', script), join(modules, '.bin', name))
  }
}

async function packagesIn(modules: string): Promise<string[]> {
  const names = await readdir(modules)
  const inside = names.map(async (name) => {
    if (!name.startsWith('@')) return [name]
    return (await readdir(join(modules, name))).map((inner) => `${name}/${inner}`)
  })
  return (await Promise.all(inside)).flat()
}
