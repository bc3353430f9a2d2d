import { ArgumentError } from '../errors.ts'
import type { Io } from './io.ts'

/**
 * The ids of chats that a command names: its arguments, and in place of `-` the lines of stdin. Each once, in their order.
 * @throws {ArgumentError} when there is none.
 */
export async function chatIds(named: readonly string[], io: Io): Promise<string[]> {
  const ids = new Set<string>()
  for (const name of named) {
    if (name === '-') for (const line of await linesOf(io.stdin)) ids.add(line)
    else if (name.trim() !== '') ids.add(name.trim())
  }
  if (ids.size === 0) throw new ArgumentError('No chat is named: give ids, - to read them from stdin, or --all-failed.')
  return [...ids]
}

async function linesOf(input: AsyncIterable<string | Uint8Array>): Promise<string[]> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const part of input) text += typeof part === 'string' ? part : decoder.decode(part, { stream: true })
  return (text + decoder.decode())
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}
