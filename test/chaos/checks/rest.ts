import { openRequests } from '../../../models/waiting.ts'
import { hasPendingWork, openCalls } from '../../../src/loop/transcript.ts'
import { transcriptProblems } from '../../../src/testing/crashes/invariants.ts'
import type { ChatEvidence, Evidence, Violation } from '../evidence.ts'

/** What is wrong with chats at rest: something is left to do, or their rows do not fit together. */
export function restViolations({ chats }: Pick<Evidence, 'chats'>): Violation[] {
  return chats.flatMap((chat) => {
    const chatId = chat.row.id
    const left = unfinished(chat)
    return [
      ...(left === null ? [] : [{ rule: 'message' as const, chatId, what: `It is at rest, and ${left}.` }]),
      ...transcriptProblems(chat).map((what) => ({ rule: 'claim' as const, chatId, what })),
    ]
  })
}

/** Why a chat should not be at rest; null = it may be. */
function unfinished({ row, messages, queue }: ChatEvidence): string | null {
  const transcript = [...messages]
  const open = openCalls(transcript)
  if (row.claimedBy !== null) return 'it is claimed'
  if (row.wantedAt !== null) return 'it is wanted'
  if (row.cancelTurn !== null) return 'its cancel was not met'
  if (row.failure !== null) return null
  if (queue.length > 0 && open.length === 0) return `${queue.length} messages wait in its queue`
  const waits = open.filter((call) => call.approval === 'pending' || openRequests(call).length > 0)
  if (waits.length < open.length) return 'a call could go on'
  if (open.length > 0) return row.parked ? null : 'calls wait, and it is not parked'
  return hasPendingWork(transcript) && row.cancelledTurn !== row.turn ? 'an answer is owed' : null
}
