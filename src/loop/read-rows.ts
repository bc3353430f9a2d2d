import type { TranscriptMessage } from '../../models/rows.ts'
import type { ChatLook } from '../../models/transcript.ts'
import type { RowsPort } from './ports.ts'
import { requireSound } from './soundness.ts'
import type { RememberedTool } from './transcript.ts'

/** What a run knows of its chat. */
export interface RunRows {
  readonly look: ChatLook
  readonly transcript: TranscriptMessage[]
  /** Tools approved for the rest of the chat by calls that a summary stands for. */
  readonly remembered: readonly RememberedTool[]
}

/**
 * Reads the rows of a chat that was just taken: the wish first, then what it is about.
 * @throws {DamagedChatError} for rows that can't be gone by. (E104)
 */
export async function readRows(rows: RowsPort, chatId: string): Promise<RunRows> {
  const look = await rows.look(chatId)
  const transcript = await rows.transcript(chatId, look.summaryThrough)
  requireSound(look.chat, transcript)
  const remembered = look.summaryThrough === null ? [] : await rows.remembered(chatId)
  return { look, transcript, remembered }
}
