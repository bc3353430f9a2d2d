import type { Failure, TranscriptMessage } from '../../models/rows.ts'

/** How a turn ended. */
export type TurnOutcome =
  | {
      readonly kind: 'answered'
      /** Which turn it was. */
      readonly turn: number
      /** The answer. */
      readonly message: TranscriptMessage
    }
  /** Nobody tries again by themselves. */
  | {
      readonly kind: 'failed'
      /** Which turn it was. */
      readonly turn: number
      /** As `chat.failure()` has it. */
      readonly failure: Failure
    }
  /** Told before the cancel is carried out: open calls get their results, and text that was shown its row, right after. */
  | {
      readonly kind: 'cancelled'
      /** Which turn it was. */
      readonly turn: number
    }

/** What an agent does when a turn of one of its chats has ended. */
export type OnTurnEnd<Chat> = (chat: Chat, outcome: TurnOutcome) => unknown
