import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { documents, parityPage, worksOf } from '../../scripts/parity/page.ts'
import { readSignatures } from '../../scripts/parity/signatures.ts'
import { provedBy, readTitles } from '../../scripts/parity/tests.ts'

const root = join(import.meta.dirname, '../..')
const rows = documents.flatMap((document) => document.rows)
/** What comes with features of its own. */
const later = [
  'after_file_write',
  'code_execution',
  'deferred_tools',
  'file_store',
  'mcp',
  'protocol=: values other than chat completions',
  'provider_tools',
  'skills',
  'with_code_execution',
  'with_mcp',
  'with_provider_tools',
  'with_skills',
]

describe('The page of parity', () => {
  const titles = readTitles(root)
  const signatures = readSignatures(root)

  it('is current', () => {
    const page = readFileSync(join(root, 'docs/parity.md'), 'utf8')
    expect(page, 'Run `npm run docs`, and commit what it changed').to.equal(parityPage(root))
  })

  it('has a test for every row that works, each of them there', () => {
    for (const row of rows.filter(worksOf)) {
      expect(row.tests, row.theirs).to.not.have.length(0)
      for (const test of row.tests) {
        expect(provedBy(test, titles), `${row.theirs}: ${test}`).to.not.have.length(0)
        // A file alone would prove anything.
        expect(test.endsWith('#'), `${row.theirs}: ${test}`).to.equal(false)
      }
    }
  })

  it('names members that there are', () => {
    const isMember = /^(Chat|Chunk|CompleteJob|MessageRecord|Tool\w*)\.\w+$/
    for (const row of rows.filter(({ ours }) => isMember.test(ours))) {
      expect([...signatures.keys()], row.theirs).to.include(row.ours)
    }
  })

  it('leaves out what comes later, and nothing else', () => {
    const missing = rows.filter((row) => !worksOf(row)).map(({ theirs }) => theirs)
    expect(missing.toSorted()).to.deep.equal(later)
    expect(
      new Set(documents.flatMap(({ title, rows: of }) => of.map(({ theirs }) => `${title} ${theirs}`))).size,
    ).to.equal(rows.length)
  })
})
