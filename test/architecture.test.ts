import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'

const root = join(import.meta.dirname, '..')
const MAX_LINES = 320

interface Source {
  readonly path: string
  readonly lines: readonly string[]
}

interface Hit {
  readonly path: string
  readonly at: string
}

const sources = readSources()

describe('the sources', () => {
  it('are found by these checks', () => {
    const paths = sources.map(({ path }) => path)
    expect(paths).to.include.members(['config/settings.ts', 'models/chat.ts', 'src/errors.ts'])
  })

  it('read the environment in config/settings.ts alone', () => {
    const environment = /\bprocess\s*\.\s*env\b|\benv\b.*from 'node:process'/
    expectNone(find(environment, outside('config/settings.ts')), 'Take the setting from config/settings.ts.')
  })

  it('throw classes of src/errors.ts, never a plain error', () => {
    const plain = /\bnew (Error|TypeError|RangeError|SyntaxError|AggregateError)\(/
    // Whatever was thrown elsewhere has to be made an Error before it is passed on.
    const conversion = /instanceof Error \? \w+ : new Error\(String\(\w+\)\)/
    const hits = find(plain, outside('src/errors.ts')).filter(({ at }) => !conversion.test(at))
    expectNone(hits, 'Throw a class of src/errors.ts, or a class of your own where no caller sees it.')
  })

  it('log nothing themselves: they observe, and src/observability makes lines of it', () => {
    const call = /\bconsole\s*\.|\blog(?:ger)?\s*\.\s*(?:trace|debug|info|warn|error|fatal)\(/
    const library = (path: string) => !/^src\/(observability|cli|testing)\//.test(path)
    expectNone(find(call, library), 'Add it to the union Observation and call observe().')
  })

  it(`stay below ${MAX_LINES} lines a file`, () => {
    // One list of every error, which the reference is made of.
    const long = sources.filter(({ path, lines }) => lines.length > MAX_LINES && path !== 'src/errors.ts')
    expectNone(
      long.map(({ path, lines }) => ({ path, at: `${lines.length} lines` })),
      'Give each concept a file of its own.',
    )
  })

  it('write rows by SQL in models/ alone', () => {
    const statement =
      /\b(INSERT|REPLACE)\s+(IGNORE\s+)?INTO\b|\bUPDATE\s+\S+\s+SET\b|\bDELETE\s+FROM\b|\bTRUNCATE\s+TABLE\b/
    // It tries the database out on a temporary table of its own.
    const hits = find(statement, (path) => !path.startsWith('models/') && path !== 'config/check-database.ts')
    expectNone(hits, 'Move the statement to models/.')
  })

  it('write rows by Sequelize models in models/ alone', () => {
    const writes = 'create|bulkCreate|update|upsert|destroy|increment|decrement|findOrCreate|truncate|restore'
    const write = new RegExp(`\\b(?:${modelNames().join('|')})\\s*\\.\\s*(?:${writes})\\(`)
    const onRecord = /\brecord\s*\.\s*(?:save|update|destroy|increment|decrement)\(/
    const outsideModels = (path: string) => !path.startsWith('models/')
    const hits = [...find(write, outsideModels), ...find(onRecord, outsideModels)]
    expectNone(hits, 'Call a function of models/ instead.')
  })
})

describe('docs/dependencies.md', () => {
  const documented = [...read('docs/dependencies.md').matchAll(/^\| `([^`]+)` \|/gm)].map((match) => match[1])

  it('has one line for each dependency of package.json and none for what is gone', () => {
    expect(documented.toSorted()).to.deep.equal(
      [...declared('dependencies'), ...declared('devDependencies')].toSorted(),
    )
  })
})

describe('package.json', () => {
  it('names an exact version of each dependency', () => {
    const versions = [...versionsOf('dependencies'), ...versionsOf('devDependencies')]
    const loose = versions.filter(([, version]) => !/^(npm:.+@)?\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))
    expect(loose).to.deep.equal([])
  })
})

describe('package-lock.json', () => {
  it('names no registry, so that it installs from whichever one npm is set up for', () => {
    expect(read('package-lock.json')).not.to.include('"resolved": "http')
  })
})

function readSources(): Source[] {
  return ['config', 'models', 'src', 'workers']
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((name) => `${folder}/${name}`))
    .filter((path) => path.endsWith('.ts'))
    .map((path) => ({ path, lines: withoutComments(read(path)).trimEnd().split('\n') }))
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}

/** Comments may name what code may not do. Line breaks stay, so that lines keep their numbers. */
function withoutComments(text: string): string {
  return text
    .replace(/(^|\s)\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ''))
    .replace(/(^|\s)\/\/.*$/gm, '$1')
}

function find(pattern: RegExp, takes: (path: string) => boolean): Hit[] {
  return sources
    .filter(({ path }) => takes(path))
    .flatMap(({ path, lines }) =>
      lines.flatMap((line, index) => (pattern.test(line) ? [{ path, at: `line ${index + 1}: ${line.trim()}` }] : [])),
    )
}

function outside(file: string): (path: string) => boolean {
  return (path) => path !== file
}

function expectNone(hits: readonly Hit[], advice: string): void {
  const list = hits.map(({ path, at }) => `  ${path}, ${at}`).join('\n')
  expect(hits, `${advice}\n${list}\n`).to.have.length(0)
}

/** The names under which the models are exported, so that a new model is watched too. */
function modelNames(): string[] {
  const names = [...read('models/index.ts').matchAll(/readonly (\w+): ModelStatic</g)].flatMap(
    (match) => match[1] ?? [],
  )
  expect(names).to.include.members(['Chat', 'Message', 'ToolCall'])
  return names
}

function versionsOf(kind: 'dependencies' | 'devDependencies'): [string, string][] {
  const manifest: Record<typeof kind, Record<string, string>> = JSON.parse(read('package.json'))
  return Object.entries(manifest[kind])
}

function declared(kind: 'dependencies' | 'devDependencies'): string[] {
  return versionsOf(kind).map(([name]) => name)
}
