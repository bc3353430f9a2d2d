import { constants, open, realpath } from 'node:fs/promises'
import { isAbsolute, relative, resolve, sep } from 'node:path'
import * as z from 'zod'
import { defineTool, ToolError } from '../../index.ts'

const mostBytes = 32 * 1024

/**
 * The text of a file inside a folder.
 * @throws {ToolError} for a file that is elsewhere (by a link, too), hidden, missing, too large, or no text.
 */
export async function readInside(folder: string, path: string): Promise<string> {
  const root = await realpath(folder)
  const file = await existing(resolve(root, path), path)
  const inside = relative(root, file)
  if (inside === '' || isAbsolute(inside) || inside.split(sep)[0] === '..') {
    throw new ToolError(`${path} is outside the current folder: I only read files inside it.`)
  }
  // Keys and the demo's own database live in such files, and what is read goes to the model.
  if (inside.split(sep).some((part) => part.startsWith('.')))
    throw new ToolError(`${path} is hidden: I leave it alone.`)
  const bytes = await contentOf(file, path)
  if (bytes.includes(0)) throw new ToolError(`${path} is not a text file.`)
  return bytes.toString('utf8')
}

async function existing(file: string, path: string): Promise<string> {
  try {
    return await realpath(file)
  } catch (error) {
    throw unreadable(path, error)
  }
}

async function contentOf(file: string, path: string): Promise<Buffer> {
  // Not to wait for the writer of a pipe.
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK).catch((error) => {
    throw unreadable(path, error)
  })
  try {
    const stat = await handle.stat()
    if (!stat.isFile()) throw new ToolError(`${path} is not a file.`)
    if (stat.size > mostBytes) {
      throw new ToolError(`${path} has ${stat.size} bytes: I read files of at most ${mostBytes}.`)
    }
    return await handle.readFile()
  } finally {
    await handle.close()
  }
}

function unreadable(path: string, error: unknown): ToolError {
  const code = (error as NodeJS.ErrnoException).code
  if (code === 'ENOENT' || code === 'ENOTDIR') return new ToolError(`There is no file ${path} in the current folder.`)
  return new ToolError(`${path} can't be read (${code ?? 'unknown reason'}).`)
}

/** Reads text files of the folder that the process was started in. */
export const readFile = defineTool({
  name: 'read_file',
  description: `Reads a text file inside the current folder, of at most ${mostBytes / 1024} KB. Hidden files are refused.`,
  parameters: z.object({ path: z.string().min(1).max(1_000).describe('relative to the current folder') }),
  execute: ({ path }) => readInside(process.cwd(), path),
})
