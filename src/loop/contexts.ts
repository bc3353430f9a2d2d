import { ownerOf } from '../../models/owner.ts'
import type { ChatRow } from '../../models/rows.ts'
import { ConfigurationError, ThreadmillError } from '../errors.ts'
import { type ModelContext, modelContextSchema } from '../tools/model-context.ts'
import type { ToolContext } from '../tools/tool.ts'
import { isRetryable } from './ending.ts'

/**
 * Says what a chat asks its models with, in every process that runs it: called at the begin of each run, and for `render`. Null
 * or undefined: as the process is configured. What it throws ends the run, as a failure of the turn; an error that is none of Threadmill's
 * or of the database becomes the cause of a ConfigurationError, since its text may hold what it looked for.
 */
export type ContextFor = (
  chat: ToolContext['chat'],
) => ModelContext | null | undefined | Promise<ModelContext | null | undefined>

/** Asks the application, and checks what it says. No value of it is part of an error. */
export function contexts(contextFor: ContextFor | undefined): (chat: ChatRow) => Promise<ModelContext | null> {
  return async ({ id, agent, owner }) => {
    const given = await asked(contextFor, { id, agent, owner: ownerOf(owner) })
    const parsed = modelContextSchema.nullable().safeParse(given)
    if (parsed.success) return parsed.data
    const fields = [...new Set(parsed.error.issues.map((issue) => issue.path[0] ?? 'what it returned'))].join(', ')
    throw new ConfigurationError(`contextFor() gave chat ${id} a context that can't be used: check ${fields}.`, {
      chatId: id,
    })
  }
}

async function asked(contextFor: ContextFor | undefined, chat: ToolContext['chat']): Promise<unknown> {
  try {
    return (await contextFor?.(chat)) ?? null
  } catch (error) {
    // A failure is stored with its text.
    if (error instanceof ThreadmillError || isRetryable(error)) throw error
    throw new ConfigurationError(`contextFor() failed for chat ${chat.id}; the cause of this error says why.`, {
      chatId: chat.id,
      cause: error,
    })
  }
}
