import type { Failure, TranscriptMessage } from '../../models/rows.ts'

/** How a turn ended. */
export type TurnOutcome =
  /** `message`: the answer. */
  | { readonly kind: 'answered'; readonly turn: number; readonly message: TranscriptMessage }
  /** Nobody tries again by themselves. `message` of the failure is as `chat.failure()` has it. */
  | { readonly kind: 'failed'; readonly turn: number; readonly failure: Failure }
  /** Told before the cancel is carried out: open calls get their results, and text that was shown its row, right after. */
  | { readonly kind: 'cancelled'; readonly turn: number }

/** What an agent does when a turn of one of its chats has ended. */
export type OnTurnEnd<Chat> = (chat: Chat, outcome: TurnOutcome) => unknown
