import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { bundle } from '../support/bundle.ts'
import { until } from '../support/until.ts'

const loader = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href
const sources = ['--import', loader, fileURLToPath(new URL('../../src/cli/demo.ts', import.meta.url))]
const marker = 'DEMO_TEST_MARKER'
const limitMs = 120_000

type Variables = Readonly<Record<string, string>>

/** What the environment of the tests may say must not decide what is tested. */
function cleanEnvironment(): Record<string, string | undefined> {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(OPENAI_|THREADMILL_|DATABASE_URL$|REDIS_URL$|NODE_ENV$|NO_COLOR$|FORCE_COLOR$)/.test(name),
  )
  return Object.fromEntries(kept)
}

/** A demo in a process of its own. */
export class Demo {
  readonly process: ChildProcess
  readonly #marker = randomUUID()
  out = ''
  err = ''
  /** The exit code, once all output was read. */
  readonly ended: Promise<number | null>

  constructor(folder: Folder, command: readonly string[], env: Variables = {}) {
    this.process = spawn(process.execPath, command, {
      cwd: folder.path,
      // A process group of its own, so that a signal can reach all of it as Ctrl-C in a terminal does.
      detached: true,
      env: { ...cleanEnvironment(), TMPDIR: folder.temporary, ...env, [marker]: this.#marker },
    })
    this.process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.out += text
    })
    this.process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.err += text
    })
    this.ended = new Promise((resolve) => this.process.once('close', resolve))
  }

  /** The id of its chat. */
  get chatId(): string {
    return /^Chat: ([\w-]+)\.$/m.exec(this.err)?.[1] ?? ''
  }

  type(text: string): void {
    this.process.stdin?.write(text)
  }

  /** Ctrl-C: every process of the group gets it. */
  interrupt(signal: NodeJS.Signals = 'SIGINT'): void {
    process.kill(-(this.process.pid ?? 0), signal)
  }

  async says(what: string | RegExp): Promise<void> {
    const found = () => (typeof what === 'string' ? this.out.includes(what) : what.test(this.out))
    await until(`the demo says ${what}; it said ${this.out}${this.err}`, found, limitMs)
  }

  /** Processes that it started and that still run, however far they are from it by now. Empty where there is no /proc. */
  leftovers(): string[] {
    return processIds().filter((pid) => environmentOf(pid).includes(`${marker}=${this.#marker}`))
  }

  async kill(): Promise<void> {
    for (const pid of this.leftovers()) {
      try {
        process.kill(Number(pid), 'SIGKILL')
      } catch {
        // Gone meanwhile.
      }
    }
    await this.ended
  }
}

function processIds(): string[] {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  } catch {
    return []
  }
}

function environmentOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8')
  } catch {
    return ''
  }
}

/** A folder to run demos in. */
export interface Folder {
  readonly path: string
  /** Where its demos put temporary files. */
  readonly temporary: string
}

/**
 * Gives each test a folder, and ends the demos that it left. Demos are bundled, since from sources each of their five
 * processes takes seconds to load.
 */
export function useDemos(): {
  folder(): Folder
  start(args: readonly string[], env?: Variables): Demo
  /** Runs one to its end. */
  run(args: readonly string[], env?: Variables): Promise<{ demo: Demo; code: number | null }>
  /** The same from sources, as `npm run demo` does. */
  runSources(args: readonly string[], env?: Variables): Promise<{ demo: Demo; code: number | null }>
  /** What a demo that ended left behind: processes and temporary files. */
  remains(demo: Demo): Promise<string[]>
} {
  let bundled: readonly string[] = []
  let root = ''
  let demos: Demo[] = []
  before(async function () {
    this.timeout(60_000)
    bundled = [(await bundle()).demo]
  })
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'demo-test-'))
    await mkdir(join(root, 'here'))
    await mkdir(join(root, 'temporary'))
  })
  afterEach(async () => {
    await Promise.all(demos.map((demo) => demo.kill()))
    demos = []
    await rm(root, { recursive: true, force: true, maxRetries: 5 })
  })
  const folder = () => ({ path: join(root, 'here'), temporary: join(root, 'temporary') })
  const begin = (command: readonly string[], env?: Variables) => {
    const demo = new Demo(folder(), command, env)
    demos.push(demo)
    return demo
  }
  const start = (args: readonly string[], env?: Variables) => begin([...bundled, ...args], env)
  const toItsEnd = async (demo: Demo) => {
    demo.process.stdin?.end()
    return { demo, code: await demo.ended }
  }
  return {
    folder,
    start,
    run: (args, env) => toItsEnd(start(args, env)),
    runSources: (args, env) => toItsEnd(begin([...sources, ...args], env)),
    async remains(demo) {
      // What tsx compiled is everybody's.
      const files = (await readdir(folder().temporary)).filter((name) => !/^(tsx|node-compile-cache)/.test(name))
      return [...demo.leftovers().map((pid) => `process ${pid}`), ...files]
    },
  }
}
