import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { settingsTable } from '../../config/settings-table.ts'
import { parityPage } from '../parity/page.ts'
import { configurationPage } from './configuration.ts'
import { errorsPage } from './errors.ts'

/** The pages that are made from sources, by their paths in the project. */
export function referencePages(root: string): ReadonlyMap<string, string> {
  return new Map([
    ['docs/reference/errors.md', errorsPage(readFileSync(join(root, 'src/errors.ts'), 'utf8'))],
    ['docs/reference/configuration.md', configurationPage(settingsTable)],
    ['docs/parity.md', parityPage(root)],
  ])
}
