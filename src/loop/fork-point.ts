import type { TranscriptMessage } from '../../models/rows.ts'
import { hasPendingWork, isSummary, latestResponse, openCalls } from './transcript.ts'

/** What a fork copies. */
export interface Forked {
  readonly messages: readonly TranscriptMessage[]
  /** The position of the last one, system messages and summaries aside; null where there is none. */
  readonly through: number | null
  /** Whether the last turn has its answer. */
  readonly answered: boolean
}

/**
 * What a fork copies of a transcript, up to a position: whole rounds, so that no call loses its results, and nothing from an
 * open round on. System messages belong to no turn: all of them come along, and so do summaries of what is copied. Pure.
 * @param at null = the end.
 */
export function forked(transcript: readonly TranscriptMessage[], at: number | null): Forked {
  const end = at === null ? Number.POSITIVE_INFINITY : endOfRound(transcript, at)
  let kept = transcript.filter((message) => message.role !== 'system' && !isSummary(message) && message.position <= end)
  for (;;) {
    const response = latestResponse(kept)
    if (response === null || openCalls(kept).length === 0) break
    kept = kept.filter(({ position }) => position < response.position)
  }
  const through = kept.at(-1)?.position ?? null
  const isKept = (message: TranscriptMessage) => {
    if (message.role === 'system') return true
    return (message.summaryThrough ?? message.position) <= (through ?? -1)
  }
  return { messages: transcript.filter(isKept), through, answered: !hasPendingWork(kept) }
}

/** The position of the last result of the round that a position lies in; the position itself where it lies in none. */
function endOfRound(transcript: readonly TranscriptMessage[], at: number): number {
  const response = latestResponse(transcript.filter(({ position }) => position <= at))
  const results = new Set((response?.toolCalls ?? []).map(({ resultId }) => resultId))
  return transcript.reduce((end, { id, position }) => (results.has(id) ? Math.max(end, position) : end), at)
}
