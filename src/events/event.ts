import type { Approval, Failure, JsonObject, ToolOutcome } from '../../models/rows.ts'

/** A tool call as viewers see it. */
export interface EventToolCall {
  /** The call's public id: what `approve` and `deny` take. */
  readonly toolCallId: string
  readonly name: string
  readonly arguments: JsonObject
}

/** What happens to a chat while it runs, as viewers see it. The union is closed: switch over `type`. */
export type LiveEvent =
  | { readonly type: 'run.started'; readonly turn: number }
  /** A model is being asked; the message gets this id when it is stored. */
  | { readonly type: 'message.started'; readonly messageId: string; readonly model: string }
  | { readonly type: 'text.delta'; readonly messageId: string; readonly text: string }
  | { readonly type: 'thinking.delta'; readonly messageId: string; readonly text: string }
  /** An answer starts anew: drop what was shown of `replaces`. */
  | { readonly type: 'attempt.restarted'; readonly messageId: string; readonly replaces: string }
  /** The answer is stored. */
  | {
      readonly type: 'message.finished'
      readonly messageId: string
      readonly text: string | null
      readonly finishReason: string | null
    }
  | { readonly type: 'tool_call.requested'; readonly messageId: string; readonly toolCall: EventToolCall }
  | { readonly type: 'approval.requested'; readonly toolCall: EventToolCall }
  | {
      readonly type: 'approval.decided'
      readonly toolCall: EventToolCall
      readonly approval: Exclude<Approval, 'pending'>
    }
  | {
      readonly type: 'tool.progress'
      readonly toolCallId: string
      readonly message: string | null
      readonly value: number | null
      readonly total: number | null
    }
  | {
      readonly type: 'tool.result'
      readonly toolCallId: string
      readonly name: string
      readonly outcome: ToolOutcome
      readonly content: string
    }
  | { readonly type: 'queued'; readonly queuedId: string; readonly content: string | null; readonly steer: boolean }
  | { readonly type: 'dequeued'; readonly queuedId: string; readonly messageId: string }
  | { readonly type: 'unqueued'; readonly queuedId: string }
  /** The turn can't go on before someone decides. */
  | { readonly type: 'run.waiting'; readonly toolCalls: readonly EventToolCall[] }
  | { readonly type: 'run.finished'; readonly messageId: string | null }
  | { readonly type: 'run.cancelled' }
  /** `retryInMs` is null when nobody will try again by themselves. */
  | { readonly type: 'run.failed'; readonly failure: Failure; readonly retryInMs: number | null }
  | {
      readonly type: 'usage'
      readonly messageId: string
      readonly inputTokens: number | null
      readonly outputTokens: number | null
      readonly cost: string | null
    }
  /**
   * Live events were lost, or are no longer kept: drop what was shown of an unfinished answer. What follows is what a
   * reader who joins now gets; what was seen before may come once more, under the same ids.
   */
  | { readonly type: 'resync' }

/** An event as a reader gets it. */
export type ChatEvent = LiveEvent & {
  /**
   * Hand it to `events({ after })` to go on from here. Events that were made from rows while a reader joins have '0-0',
   * which stands for no place in the stream: whoever goes on from it gets `resync`, and joins afresh.
   */
  readonly id: string
  readonly chatId: string
  /** Which take of the chat it comes from; 0 = from outside any run. Of one made from rows: the latest take. */
  readonly claimToken: number
}
