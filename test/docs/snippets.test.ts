import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { execa } from 'execa'
import { demoModel, type ModelServer, startModelServer } from '../../src/testing/index.ts'
import { compile, documentsOf, read, snippetsOf } from './snippets.ts'

const root = fileURLToPath(new URL('../../', import.meta.url)).replace(/\/$/, '')
const snippets = documentsOf(root).flatMap((document) => snippetsOf(document, read(root, document)))

describe('The code in the documents', function () {
  this.timeout(120_000)
  let folder = ''
  let server: ModelServer

  before(async () => {
    // Inside the project, so that its packages, and itself by name, are found. Git and the compiler leave dot folders out.
    folder = await mkdtemp(join(root, 'test/docs/.run-'))
    server = await startModelServer({ respond: demoModel({ chunkDelayMs: 0 }) })
  })
  after(async () => {
    await server.close()
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  })

  it('is found, and that of the README has a program that runs', () => {
    const readme = snippets.filter((snippet) => snippet.document === 'README.md')
    expect(readme.length).to.be.at.least(10)
    expect(readme.filter((snippet) => snippet.runs && snippet.output !== null)).to.have.length.of.at.least(1)
  })

  it('compiles against the sources, and would not with a name that does not exist', () => {
    const wrong = snippetsOf('WRONG.md', 'A\n\n```ts\nimport { Threadmil } from "threadmill"\nnew Threadmil()\n```\n')
    const complaints = compile(root, [...snippets, ...wrong])
    expect(complaints.filter((text) => !text.startsWith('WRONG.md'))).to.deep.equal([])
    expect(complaints).to.have.length(1)
    expect(complaints[0]).to.match(/^WRONG\.md:4 .*Threadmil/)
  })

  for (const { document, line, code, runs, output } of snippets) {
    if (!runs) continue
    it(`runs: ${document}, line ${line}`, async () => {
      const file = join(folder, `line-${line}.ts`)
      await writeFile(file, code)
      const { stdout } = await execa(process.execPath, ['--import', 'tsx', file], {
        cwd: folder,
        env: {
          DATABASE_URL: '',
          REDIS_URL: '',
          NODE_ENV: '',
          OPENAI_BASE_URL: server.url,
          OPENAI_API_KEY: 'test-key',
          THREADMILL_MODEL: 'demo',
        },
        timeout: 100_000,
      })
      if (output !== null) expect(`${stdout}\n`).to.equal(output)
      expect(await readdir(join(folder, '.threadmill'))).not.to.include('redis.json')
    })
  }
})
