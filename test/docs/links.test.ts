import { existsSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect } from 'chai'
import { documentsOf, read } from './snippets.ts'

const root = join(import.meta.dirname, '../..')
const documents = [...documentsOf(root), 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md']

/** Text without code, in which brackets are no links and `#` is no heading. */
const prose = (document: string): string =>
  read(root, document)
    .replace(/^```[\s\S]*?^```$/gm, '')
    .replace(/`[^`\n]*`/g, (code) => code.replace(/[[\]()]/g, ' '))

/** The anchors of a document's headings, as sites that show Markdown make them. */
const anchorsOf = (document: string): string[] =>
  [
    ...read(root, document)
      .replace(/^```[\s\S]*?^```$/gm, '')
      .matchAll(/^#+ (.*)$/gm),
  ].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replace(/\s/g, '-'),
  )

const linksOf = (document: string): string[] =>
  [...prose(document).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))

/** What is wrong with a link; null for nothing. */
function complaintAbout(document: string, link: string): string | null {
  const [path = '', anchor] = link.split('#')
  const target = path === '' ? document : normalize(join(dirname(document), path))
  if (!existsSync(join(root, target))) return `${document}: there is no ${target}`
  if (anchor === undefined || statSync(join(root, target)).isDirectory()) return null
  return anchorsOf(target).includes(anchor) ? null : `${document}: ${target} has no heading #${anchor}`
}

describe('The links of the documents', () => {
  it('lead to files and headings that there are', () => {
    const wrong = documents.flatMap((document) => linksOf(document).map((link) => complaintAbout(document, link)))
    expect(wrong.length).to.be.at.least(50)
    expect(wrong.filter((text) => text !== null)).to.deep.equal([])
    expect(complaintAbout('README.md', 'docs/nothing.md')).to.include('there is no docs/nothing.md')
    expect(complaintAbout('README.md', '#nothing')).to.include('no heading #nothing')
  })

  it('lead from the index to every document', () => {
    const linked = linksOf('docs/README.md').map((link) => normalize(join('docs', link)))
    expect(linked).to.include.members(documentsOf(root).filter((document) => document !== 'docs/README.md'))
  })
})
