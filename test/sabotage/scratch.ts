import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Edit } from './sabotages.ts'

const root = join(import.meta.dirname, '../..')
const copied = ['config', 'models', 'src', 'workers', 'test', 'package.json', 'package-lock.json', 'tsconfig.json']

/** A copy of the working tree, to be spoilt. */
export class Scratch {
  readonly folder = mkdtempSync(join(tmpdir(), 'threadmill-sabotage-'))

  constructor() {
    for (const name of copied) cpSync(join(root, name), join(this.folder, name), { recursive: true })
    symlinkSync(join(root, 'node_modules'), join(this.folder, 'node_modules'))
  }

  /** Makes the edits for as long as `work` runs. */
  async spoilt<T>(edits: readonly Edit[], work: () => Promise<T>): Promise<T> {
    const spoilt = spoiltFiles(edits, this.folder)
    const whole = [...spoilt.keys()].map((file) => [file, readFileSync(join(this.folder, file), 'utf8')] as const)
    this.#write(spoilt)
    try {
      return await work()
    } finally {
      this.#write(whole)
    }
  }

  #write(files: Iterable<readonly [file: string, text: string]>): void {
    for (const [file, text] of files) writeFileSync(join(this.folder, file), text)
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/**
 * The files that the edits change, as they are after them; by default those of the working tree.
 * @throws {Error} when a text to be replaced is not there exactly once: the code has changed, and the sabotage has to be made anew.
 */
export function spoiltFiles(edits: readonly Edit[], folder = root): ReadonlyMap<string, string> {
  const files = new Map<string, string>()
  for (const { file, find, put } of edits) {
    const text = files.get(file) ?? readFileSync(join(folder, file), 'utf8')
    const times = text.split(find).length - 1
    if (times !== 1)
      throw new Error(`${file} has this ${times} times, and a sabotage replaces it where it is there once:\n${find}`)
    files.set(
      file,
      text.replace(find, () => put),
    )
  }
  return files
}
