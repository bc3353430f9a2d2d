import { newMessage } from '../../models/new-message.ts'
import type { ChatRow } from '../../models/rows.ts'
import { type Instruction, type PendingSettings, settingsAfter } from '../../models/settings.ts'
import type { MemoryTables } from './tables.ts'

/** `savePending` of `models/settings.ts`. Rows of models are not kept here. */
export function savePending(tables: MemoryTables, chat: ChatRow, pending: PendingSettings): void {
  const { model, provider, inputs, instructions } = pending
  const settings = settingsAfter(chat.settings, pending)
  const given = Object.entries({ model, provider, settings, inputs }).filter(([, value]) => value !== undefined)
  if (given.length > 0) Object.assign(chat, Object.fromEntries(given), { updatedAt: tables.now() })
  if (instructions !== undefined) saveInstructions(tables, chat, instructions)
}

function saveInstructions(tables: MemoryTables, chat: ChatRow, instructions: readonly Instruction[]): void {
  const messages = tables.messages(chat.id)
  const stored = messages.filter((message) => message.role === 'system')
  for (const [at, message] of stored.entries()) {
    const said = instructions[at]
    if (said === undefined) {
      messages.splice(messages.indexOf(message), 1)
      continue
    }
    const same = JSON.stringify(message.cacheBoundary) === JSON.stringify(said.cacheBoundary)
    if (message.content === said.content && same) continue
    Object.assign(message, { ...said, updatedAt: tables.now() })
  }
  const added = instructions.slice(stored.length).map((instruction, at) =>
    newMessage({
      id: `${chat.id}-system-${chat.nextPosition + at}`,
      chatId: chat.id,
      role: 'system',
      createdAt: tables.now(),
      ...instruction,
    }),
  )
  tables.append(chat.id, added)
}
