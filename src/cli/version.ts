import { readFileSync } from 'node:fs'
import { z } from 'zod'

const manifest = z.object({ name: z.string(), version: z.string() })

/** The version of the package of this name that a file belongs to; null when it belongs to none. Sources and what is built from them lie at different depths. */
export function versionAbove(file: string, name: string): string | null {
  for (let folder = new URL('./', file); ; folder = new URL('../', folder)) {
    const found = read(new URL('package.json', folder))
    if (found?.name === name) return found.version
    if (folder.pathname === new URL('../', folder).pathname) return null
  }
}

function read(file: URL): z.infer<typeof manifest> | null {
  try {
    return manifest.parse(JSON.parse(readFileSync(file, 'utf8')))
  } catch {
    return null
  }
}
