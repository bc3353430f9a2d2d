import type { TranscriptMessage } from '../../models/rows.ts'
import { currentMessages, hasPendingWork } from './transcript.ts'

/** Which messages a summary is to stand for. */
export interface CompactionPlan {
  /** In their order; the summary that there is already is replaced too, and not among them. */
  readonly covered: readonly TranscriptMessage[]
  /** The position of the last of them. */
  readonly through: number
}

/**
 * Everything but the last `keep` messages, and never a part of a round. Of a turn that is not answered, the question and
 * what came after it always stay. Null = there is nothing to summarise.
 */
export function planCompaction(transcript: readonly TranscriptMessage[], keep: number): CompactionPlan | null {
  const messages = currentMessages(transcript)
  const question = messages.findLastIndex((message) => message.role === 'user')
  const turn = hasPendingWork(transcript) ? Math.max(0, question) : messages.length
  let cut = Math.min(Math.max(0, messages.length - keep), turn)
  while (cut > 0 && messages[cut]?.role === 'tool') cut--
  const covered = messages.slice(0, cut)
  const last = covered.at(-1)
  return last === undefined ? null : { covered, through: last.position }
}
