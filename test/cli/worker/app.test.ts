import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'chai'
import { loadApp } from '../../../src/cli/worker/app.ts'
import { ConfigurationError } from '../../../src/index.ts'
import { errorFrom } from '../../tools/rows.ts'

const library = pathToFileURL(join(import.meta.dirname, '../../../src/index.ts')).href
const esm = `import { defineAgent, defineTool } from ${JSON.stringify(library)}
const support = defineAgent({ name: 'support' })
const now = defineTool({ name: 'now', description: 'The time.', parameters: { type: 'object' }, execute: () => 'noon' })
`

describe('The file of an application', function () {
  this.timeout(60_000)
  let folder: string
  let made = 0
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'threadmill-app-'))
  })
  after(() => rm(folder, { recursive: true, force: true }))

  async function app(ending: string, code: string): Promise<string> {
    const file = join(folder, `app-${++made}${ending}`)
    await writeFile(file, code)
    return file
  }
  const namesOf = async (file: string) => {
    const { agents, tools } = await loadApp(file)
    return [...agents, ...tools].map(({ name }) => name)
  }

  for (const [what, code] of [
    ['the value itself', `${esm}export default { agents: [support], tools: [now] }`],
    ['a function', `${esm}export default () => ({ agents: [support], tools: [now] })`],
    ['an async function', `${esm}export default async () => ({ agents: [support], tools: [now] })`],
    ['a promise', `${esm}export default Promise.resolve({ agents: [support], tools: [now] })`],
  ] as const) {
    it(`may export ${what}`, async () => {
      expect(await namesOf(await app('.mjs', code))).to.deep.equal(['support', 'now'])
    })
  }

  it('may say what its chats ask their models with (E21)', async () => {
    const code = `${esm}export default { agents: [support], contextFor: (chat) => ({ apiKey: 'key-of-' + chat.owner }) }`
    const { contextFor } = await loadApp(await app('.mjs', code))
    expect(contextFor?.({ id: 'c1', agent: 'support', owner: 'tenant-7' })).to.deep.equal({ apiKey: 'key-of-tenant-7' })
  })

  it('may say where the files of messages are kept', async () => {
    const { attachments } = await loadApp(
      await app('.mjs', `${esm}export default { agents: [support], attachments: { maxBytes: 7 } }`),
    )
    expect(attachments).to.deep.equal({ maxBytes: 7 })
  })

  it('may be TypeScript', async () => {
    const file = await app('.ts', `${esm}const agents: unknown[] = [support]\nexport default { agents } as const`)
    expect(await namesOf(file)).to.deep.equal(['support'])
  })

  it('may be CommonJS, compiled from ESM or written so', async () => {
    const agent = '{ name: "support", tools: [], rounds: 1 }'
    const written = await app('.cjs', `module.exports = { agents: [${agent}] }`)
    expect(await namesOf(written)).to.deep.equal(['support'])
    const compiled = await app(
      '.cjs',
      `Object.defineProperty(exports, '__esModule', { value: true })\nexports.default = { agents: [${agent}] }`,
    )
    expect(await namesOf(compiled)).to.deep.equal(['support'])
  })

  for (const [what, code, complaint] of [
    ['throws', 'throw new Error("no key")', /could not be loaded: no key$/],
    ['can not be read', 'export default {', /could not be loaded: /],
    ['exports nothing', 'export const agents = []', /is nothing: it must be \{ agents, tools \}/],
    ['exports a list', 'export default []', /is a list: /],
    ['exports a function that throws', 'export default () => { throw new Error("no db") }', /failed: no db$/],
    ['has no agents', 'export default {}', /- agents: must be a list of agents$/],
    ['has an empty list of agents', 'export default { agents: [] }', /- agents: must name at least one agent$/],
    ['has an agent of its own making', 'export default { agents: [{ name: "x" }] }', /- agents\.0: .*defineAgent\(\)$/],
    [
      'has a tool of its own making',
      `${esm}export default { agents: [support], tools: [{}] }`,
      /- tools\.0: .*defineTool/,
    ],
    [
      'has a context in place of a function',
      `${esm}export default { agents: [support], contextFor: { apiKey: 'hush' } }`,
      /- contextFor: must be a function$/,
    ],
    [
      'brings what a worker does not take',
      `${esm}export default { agents: [support], contexts: () => ({}), agent: support }`,
      /- contexts, agent: not known here; what a worker takes is agents, tools, contextFor and attachments$/,
    ],
  ] as const) {
    it(`is refused with a reason when it ${what}`, async () => {
      const file = await app('.mjs', code)
      const error = await errorFrom(() => loadApp(file))
      expect(error).to.be.instanceOf(ConfigurationError)
      expect((error as Error).message)
        .to.include(file)
        .and.to.match(complaint)
    })
  }

  it('is refused when it does not exist, or is a folder', async () => {
    for (const file of [join(folder, 'missing.ts'), folder]) {
      const error = await errorFrom(() => loadApp(file))
      expect((error as Error).message).to.equal(`--app: there is no file ${file}.`)
    }
  })
})
