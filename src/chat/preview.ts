import { newMessage } from '../../models/new-message.ts'
import type { ChatRow, TranscriptMessage } from '../../models/rows.ts'
import { type PendingSettings, settingsAfter } from '../../models/settings.ts'

/** A chat and its messages as they would be once everything pending was stored. */
export function previewed(
  chat: ChatRow,
  transcript: readonly TranscriptMessage[],
  pending: PendingSettings,
): { readonly row: ChatRow; readonly transcript: readonly TranscriptMessage[] } {
  const { instructions, changed: _, settings: __, ...assigned } = pending
  const row = { ...chat, ...assigned, settings: settingsAfter(chat.settings, pending) ?? chat.settings }
  if (instructions === undefined) return { row, transcript }
  const said = instructions.map((instruction, position) => ({
    ...newMessage({ id: '', chatId: chat.id, role: 'system', ...instruction }),
    position,
    updatedAt: chat.updatedAt,
    toolCalls: [],
  }))
  return { row, transcript: [...said, ...transcript.filter((message) => message.role !== 'system')] }
}
