import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { transformSync } from 'esbuild'
import ts from 'typescript'
import { sabotages } from './sabotages.ts'
import { spoiltFiles } from './scratch.ts'

const root = join(import.meta.dirname, '../..')

describe('A sabotage', () => {
  for (const [name, { edits }] of Object.entries(sabotages)) {
    it(`by the name of ${name} still spoils the code, and leaves it code`, () => {
      const files = spoiltFiles(edits)
      expect(files.size).to.be.greaterThan(0)
      for (const [file, text] of files) {
        expect(text, file).to.not.equal(readFileSync(join(root, file), 'utf8'))
        transformSync(text, { loader: 'ts', sourcefile: file })
      }
    })
  }

  it('is refused where the code that it replaces has changed', () => {
    const edit = { file: 'models/claims.ts', find: 'no such text', put: '' }
    expect(() => spoiltFiles([edit])).to.throw(/models\/claims\.ts has this 0 times/)
    expect(() => spoiltFiles([{ ...edit, find: 'export' }])).to.throw(/there once/)
  })

  if (process.env.THREADMILL_FULL === '1') {
    it('is a mistake that the compiler does not see', () => {
      expect(complaints(spoiltFiles(Object.values(sabotages).flatMap(({ edits }) => edits)))).to.eql([])
    }).timeout(120_000)
  }
})

/** What the compiler says of these files, all of them in place of those that there are. */
function complaints(files: ReadonlyMap<string, string>): string[] {
  const path = join(root, 'tsconfig.json')
  const { options } = ts.parseJsonConfigFileContent(ts.readConfigFile(path, ts.sys.readFile).config, ts.sys, root)
  const host = ts.createCompilerHost(options)
  const { readFile, getSourceFile } = host
  const spoilt = (file: string) => files.get(file.slice(root.length + 1))
  host.readFile = (file) => spoilt(file) ?? readFile(file)
  host.getSourceFile = (file, version, ...rest) => {
    const text = spoilt(file)
    return text === undefined ? getSourceFile(file, version, ...rest) : ts.createSourceFile(file, text, version, true)
  }
  const program = ts.createProgram(
    [...files.keys()].map((file) => join(root, file)),
    options,
    host,
  )
  return [...files.keys()].flatMap((file) => {
    const source = program.getSourceFile(join(root, file))
    return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map(
      ({ messageText }) => `${file}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`,
    )
  })
}
