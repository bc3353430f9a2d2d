import { createHash } from 'node:crypto'
import stringify from 'safe-stable-stringify'
import type { ToolCallRow } from './rows.ts'

/** What a call runs with: what a person put in place of the model's arguments, else these. */
export function effectiveArguments(call: Pick<ToolCallRow, 'arguments' | 'editedArguments'>): ToolCallRow['arguments'] {
  return call.editedArguments ?? call.arguments
}

/** SHA-256 of a call's tool and of what it runs with, as hex; the order of keys does not matter, which databases change. */
export function argumentsHash(call: Pick<ToolCallRow, 'name' | 'arguments' | 'editedArguments'>): string {
  return createHash('sha256')
    .update(stringify([call.name, effectiveArguments(call)]) ?? '')
    .digest('hex')
}
