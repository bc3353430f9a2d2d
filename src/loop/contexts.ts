import type { ChatRow } from '../../models/rows.ts'
import { ConfigurationError } from '../errors.ts'
import { type ModelContext, modelContextSchema } from '../tools/model-context.ts'
import type { ToolContext } from '../tools/tool.ts'

/**
 * Says what a chat asks its models with, in every process that runs it: called at the begin of each run, and for `render`. Null
 * or undefined: as the process is configured. What it throws ends the run, as a failure of the turn.
 */
export type ContextFor = (
  chat: ToolContext['chat'],
) => ModelContext | null | undefined | Promise<ModelContext | null | undefined>

/** Asks the application, and checks what it says. No value of it is part of an error. */
export function contexts(contextFor: ContextFor | undefined): (chat: ChatRow) => Promise<ModelContext | null> {
  return async ({ id, agent, owner }) => {
    const given = (await contextFor?.({ id, agent, owner })) ?? null
    const parsed = modelContextSchema.nullable().safeParse(given)
    if (parsed.success) return parsed.data
    const fields = [...new Set(parsed.error.issues.map((issue) => issue.path[0] ?? 'what it returned'))].join(', ')
    throw new ConfigurationError(`contextFor() gave chat ${id} a context that can't be used: check ${fields}.`, {
      chatId: id,
    })
  }
}
