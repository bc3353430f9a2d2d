import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** One `it` of the tests: its file below `test/`, and its title as it is written. */
export interface TestTitle {
  readonly file: string
  readonly title: string
}

/** The titles of all tests but those that are skipped. */
export function readTitles(root: string): TestTitle[] {
  const folder = join(root, 'test')
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.test.ts'))
  return files.toSorted().flatMap((file) => {
    const text = readFileSync(join(folder, file), 'utf8')
    return [...text.matchAll(/\bit\(\s*(['"`])((?:\\.|(?!\1).)*)\1/gs)].map((match) => ({
      file: file.replaceAll('\\', '/'),
      title: match[2] ?? '',
    }))
  })
}

/** The files whose tests prove a row: those that cite a number, or the one named with a part of a title. */
export function provedBy(test: string, titles: readonly TestTitle[]): string[] {
  const [file, part] = test.split('#')
  const cites = new RegExp(`\\b${test}\\b`)
  const found =
    part === undefined
      ? titles.filter(({ title }) => cites.test(title))
      : titles.filter((one) => one.file === file && one.title.includes(part))
  return [...new Set(found.map((one) => one.file))]
}
