import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { settingsTable } from '../../config/settings-table.ts'
import { readErrors } from '../../scripts/reference/errors.ts'
import { referencePages } from '../../scripts/reference/pages.ts'
import { ThreadmillError } from '../../src/errors.ts'
import * as everything from '../../src/index.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

describe('The generated reference', () => {
  for (const [path, text] of referencePages(root)) {
    it(`is current: ${path}`, () => {
      expect(read(path), 'Run `npm run docs`, and commit what it changed').to.equal(text)
    })
  }

  it('has every error that the package exports, and says of each what it means and what to do', () => {
    const entries = readErrors(read('src/errors.ts'))
    const exported = Object.values(everything).filter(
      (value) =>
        typeof value === 'function' && (value === ThreadmillError || value.prototype instanceof ThreadmillError),
    )
    expect(entries.map(({ name }) => name)).to.have.members(exported.map((value) => (value as { name: string }).name))
    const thrown = entries.filter(({ code }) => code !== null)
    expect(
      thrown.filter(({ meaning, remedy }) => meaning === '' || remedy === '').map(({ name }) => name),
    ).to.deep.equal([])
    expect(new Set(thrown.map(({ code }) => code)).size).to.equal(thrown.length)
  })

  it('reads code, retryability and family of an error from its source', () => {
    const source = `
      export abstract class ThreadmillError extends Error { readonly retryable: boolean = false }
      /** A family. */
      export abstract class Family extends ThreadmillError { override readonly retryable: boolean }
      /** Said of {@link Family}.
       * @remarks Do this. */
      export class One extends Family { readonly code = 'one' }
      /** Two. */
      export class Two extends ThreadmillError { readonly code: string = 'two'; override readonly retryable = true }`
    expect(readErrors(source).slice(1)).to.deep.equal([
      { name: 'Family', parent: 'ThreadmillError', code: null, retryable: 'varies', meaning: 'A family.', remedy: '' },
      {
        name: 'One',
        parent: 'Family',
        code: 'one',
        retryable: 'varies',
        meaning: 'Said of `Family`.',
        remedy: 'Do this.',
      },
      { name: 'Two', parent: 'ThreadmillError', code: 'two', retryable: 'yes', meaning: 'Two.', remedy: '' },
    ])
  })

  it('has every setting with its variable', () => {
    const page = read('docs/reference/configuration.md')
    for (const [name, { env }] of Object.entries(settingsTable)) expect(page).to.include(`| \`${name}\` | \`${env}\` |`)
  })
})
