import type { ToolCallRow, TranscriptMessage, Transfer } from '../../models/rows.ts'
import type { ChatLook } from '../../models/transcript.ts'
import { planCompaction } from './compaction-plan.ts'
import { abandonedCalls, hasPendingWork, isWaiting, latestResponse, openCalls } from './transcript.ts'

// The next move, from rows alone. The first line that fits wins:
//
//   a cancel of this turn waits, the turn has work      -> settle-cancelled
//   open round, a call can make progress                -> run-tools
//   open round, every call waits on something outside   -> park
//   another agent is to go on                           -> transfer
//   an answer is owed
//     but the turn was cancelled and nothing is queued  -> rest
//     but the turn was cancelled                        -> take-queued (all, starts a turn)
//     a steering message waits                          -> take-queued (steering, same turn)
//     the turn's tool rounds are used up                -> stop-rounds
//     the context is over the threshold of compaction
//       and something can be summarised, twice a turn   -> compact
//       and the request can't fit                       -> stop-context
//     otherwise                                         -> generate
//   a message waits                                     -> take-queued (all, starts a turn)
//   nothing                                             -> rest

export type Move =
  | { readonly kind: 'settle-cancelled'; readonly open: readonly ToolCallRow[] }
  | { readonly kind: 'run-tools'; readonly message: TranscriptMessage; readonly calls: readonly ToolCallRow[] }
  | { readonly kind: 'park'; readonly waiting: readonly ToolCallRow[] }
  | { readonly kind: 'transfer'; readonly to: Transfer }
  | { readonly kind: 'take-queued'; readonly which: 'steering' | 'all'; readonly startsTurn: boolean }
  | { readonly kind: 'stop-rounds'; readonly limit: number }
  /** `keep`: how many of the latest messages stay out of the summary. */
  | { readonly kind: 'compact'; readonly keep: number }
  | { readonly kind: 'stop-context'; readonly tokens: number; readonly limit: number }
  /** `abandoned`: calls of earlier rounds, to be closed before the model is asked. */
  | { readonly kind: 'generate'; readonly abandoned: readonly ToolCallRow[] }
  | { readonly kind: 'rest' }

/** The rows that a decision rests on. */
export interface Snapshot extends Pick<ChatLook, 'queued'> {
  readonly chat: Pick<
    ChatLook['chat'],
    'turn' | 'cancelTurn' | 'cancelledTurn' | 'rounds' | 'compactions' | 'transferTo'
  >
  readonly transcript: readonly TranscriptMessage[]
}

/** How full the context is; all but `keep` in tokens. */
export interface ContextPressure {
  /** What the next request takes up. */
  readonly tokens: number
  /** From here on a summary is due. */
  readonly threshold: number
  /** What no request may exceed. */
  readonly limit: number
  readonly keep: number
  /** A summary has failed in this run: it is not tried again. */
  readonly spent: boolean
}

/** Summaries that one turn asks for by itself; the second one keeps nothing that it need not. */
export const COMPACTIONS_A_TURN = 2

export interface DecideOptions {
  readonly roundLimit: number
  /** Waiting calls that this run may look at again: their resolver has not been asked yet, or an approval was remembered. */
  readonly reconsider: (call: ToolCallRow) => boolean
  /** Null: compaction is off, or no answer is owed. */
  readonly context: ContextPressure | null
}

export function decide(snapshot: Snapshot, { roundLimit, reconsider, context }: DecideOptions): Move {
  const { chat, queued, transcript } = snapshot
  const open = openCalls(transcript)
  const pending = hasPendingWork(transcript)
  if (chat.cancelTurn === chat.turn && pending) {
    return { kind: 'settle-cancelled', open: [...abandonedCalls(transcript), ...open] }
  }

  const message = latestResponse(transcript)
  if (open.length > 0 && message !== null) {
    const calls = open.filter((call) => !isWaiting(call) || reconsider(call))
    return calls.length > 0 ? { kind: 'run-tools', message, calls } : { kind: 'park', waiting: open }
  }

  if (chat.transferTo !== null) return { kind: 'transfer', to: chat.transferTo }

  const cancelled = chat.cancelledTurn === chat.turn
  if (pending && !cancelled) {
    if (queued.steering > 0) return { kind: 'take-queued', which: 'steering', startsTurn: false }
    if (chat.rounds >= roundLimit) return { kind: 'stop-rounds', limit: roundLimit }
    return relief(snapshot, context) ?? { kind: 'generate', abandoned: abandonedCalls(transcript) }
  }
  return queued.total > 0 ? { kind: 'take-queued', which: 'all', startsTurn: true } : { kind: 'rest' }
}

/** What comes before the next answer where the context is nearly full; null = the model can be asked. */
function relief({ chat, transcript }: Snapshot, context: ContextPressure | null): Move | null {
  if (context === null || context.tokens < context.threshold) return null
  if (!context.spent && chat.compactions < COMPACTIONS_A_TURN) {
    const wishes = chat.compactions === 0 ? [context.keep, 0] : [0]
    const keep = wishes.find((wish) => planCompaction(transcript, wish) !== null)
    if (keep !== undefined) return { kind: 'compact', keep }
  }
  const { tokens, limit } = context
  return tokens < limit ? null : { kind: 'stop-context', tokens, limit }
}
