import { transcriptProblems, unansweredCalls } from '../../../src/testing/crashes/invariants.ts'
import { leftToDo } from '../../simulation/rest.ts'
import type { ChatEvidence, Evidence, Violation } from '../evidence.ts'

/** What is wrong with chats at rest: something is left to do, or their rows do not fit together. */
export function restViolations({ chats }: Pick<Evidence, 'chats'>): Violation[] {
  return chats.flatMap((chat) => {
    const chatId = chat.row.id
    const left = unfinished(chat)
    return [
      ...(left === null ? [] : [{ rule: 'message' as const, chatId, what: `It is at rest, and ${left}.` }]),
      ...[...transcriptProblems(chat), ...(chat.row.failure === null ? unansweredCalls(chat) : [])].map((what) => ({
        rule: 'claim' as const,
        chatId,
        what,
      })),
    ]
  })
}

function unfinished({ row, messages, queued }: ChatEvidence): string | null {
  if (row.claimedBy !== null) return 'it is claimed'
  if (row.wantedAt !== null) return 'it is wanted'
  return leftToDo({ chat: row, transcript: messages, queued })
}
