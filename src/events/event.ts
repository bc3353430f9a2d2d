import type { Approval, Failure, JsonObject, ToolOutcome } from '../../models/rows.ts'
import type { InputField } from '../../models/waiting.ts'

/** A tool call as viewers see it. */
export interface EventToolCall {
  /** The call's public id: what `approve` and `deny` take. */
  readonly toolCallId: string
  /** The tool's name. */
  readonly name: string
  /** What the model passed; `{}` when that was not one JSON object. */
  readonly arguments: JsonObject
}

/** A file as viewers see it; its bytes are read from the message that holds it. */
export interface EventAttachment {
  /** The id that it has among the `attachments` of its message. */
  readonly id: string
  /** What it is called. */
  readonly filename: string
  /** Its media type. */
  readonly contentType: string
  /** How many bytes it has. */
  readonly byteSize: number
}

/** What happens to a chat while it runs, as viewers see it. The union is closed: switch over `type`. */
export type LiveEvent =
  /** A process took the chat and goes on with its turn. */
  | {
      readonly type: 'run.started'
      /** Counts turns. */
      readonly turn: number
    }
  /** A model is being asked. */
  | {
      readonly type: 'message.started'
      /** The id that the message gets when it is stored. */
      readonly messageId: string
      /** The model asked. */
      readonly model: string
    }
  | {
      readonly type: 'text.delta'
      /** The answer that it is a part of. */
      readonly messageId: string
      /** The text that is new. */
      readonly text: string
    }
  | {
      readonly type: 'thinking.delta'
      /** The answer that it leads to. */
      readonly messageId: string
      /** The reasoning that is new. */
      readonly text: string
    }
  /** An answer starts anew: drop what was shown of `replaces`. */
  | {
      readonly type: 'attempt.restarted'
      /** The id of the new answer. */
      readonly messageId: string
      /** The id of the one that is void. */
      readonly replaces: string
    }
  /** The answer is stored. */
  | {
      readonly type: 'message.finished'
      /** The id of its row. */
      readonly messageId: string
      /** The whole text; null for an answer of tool calls only. */
      readonly text: string | null
      /** Why it ended, in the provider's words; null where it gave none. */
      readonly finishReason: string | null
    }
  | {
      readonly type: 'tool_call.requested'
      /** The answer that asks for it. */
      readonly messageId: string
      /** The call. */
      readonly toolCall: EventToolCall
    }
  | {
      readonly type: 'approval.requested'
      /** The call that waits for a decision. */
      readonly toolCall: EventToolCall
    }
  | {
      readonly type: 'approval.decided'
      /** The call decided about. */
      readonly toolCall: EventToolCall
      /** What was decided. */
      readonly approval: Exclude<Approval, 'pending'>
    }
  | {
      readonly type: 'input.requested'
      /** The call whose tool asks. */
      readonly toolCallId: string
      /** The tool's name. */
      readonly name: string
      /** Which question of the call it is. */
      readonly key: string
      /** What is asked. */
      readonly message: string
      /** What the answer is to hold. */
      readonly fields: readonly InputField[]
    }
  | {
      readonly type: 'input.answered'
      /** The call whose tool asked. */
      readonly toolCallId: string
      /** Which question of the call it was. */
      readonly key: string
      /** Whether the answer was that there is none. */
      readonly declined: boolean
    }
  | {
      readonly type: 'tool.progress'
      /** The call that reports. */
      readonly toolCallId: string
      /** What it is doing; null where it did not say. */
      readonly message: string | null
      /** How much is done; null where it did not say. */
      readonly value: number | null
      /** How much there is to do; null where it did not say. */
      readonly total: number | null
    }
  /** Another agent answers the call, in a chat of its own. */
  | {
      readonly type: 'sub_chat.started'
      /** The call that it answers. */
      readonly toolCallId: string
      /** The tool's name. */
      readonly name: string
      /** The id of that chat: its events are its own, but for what asks somebody something. */
      readonly subChatId: string
      /** The name of the agent. */
      readonly agent: string
    }
  /** From now on another agent answers. */
  | {
      readonly type: 'transferred'
      /** The name of the agent. */
      readonly agent: string
    }
  /** The result of a call is stored. */
  | {
      readonly type: 'tool.result'
      /** The call. */
      readonly toolCallId: string
      /** The tool's name. */
      readonly name: string
      /** How the call ended. */
      readonly outcome: ToolOutcome
      /** What the model gets. */
      readonly content: string
      /** The files that go with it; empty = none. */
      readonly attachments: readonly EventAttachment[]
    }
  | {
      readonly type: 'queued'
      /** The id that `unqueue` takes. */
      readonly queuedId: string
      /** The text. */
      readonly content: string | null
      /** Whether it joins the running turn. */
      readonly steer: boolean
    }
  | {
      readonly type: 'dequeued'
      /** The queued message. */
      readonly queuedId: string
      /** The user message that it became. */
      readonly messageId: string
    }
  | {
      readonly type: 'unqueued'
      /** The queued message that was taken back. */
      readonly queuedId: string
    }
  /** A user message is asked again, and what came behind it is gone: drop the messages named. */
  | {
      readonly type: 'transcript.cut'
      /** The user message. */
      readonly messageId: string
      /** What it says now. */
      readonly content: string
      /** The ids of the messages that are gone. */
      readonly removed: readonly string[]
    }
  /** The turn can't go on before someone decides. */
  | {
      readonly type: 'run.waiting'
      /** The calls that wait. */
      readonly toolCalls: readonly EventToolCall[]
    }
  /** The turn is answered. */
  | {
      readonly type: 'run.finished'
      /** The answer; null where there is none. */
      readonly messageId: string | null
    }
  /** The turn was cancelled. */
  | { readonly type: 'run.cancelled' }
  | {
      readonly type: 'run.failed'
      /** What went wrong. */
      readonly failure: Failure
      /** When it is tried again, in ms; null when nobody will try again by themselves. */
      readonly retryInMs: number | null
    }
  | {
      readonly type: 'usage'
      /** The answer that the attempt was for. */
      readonly messageId: string
      /** Null = not reported. */
      readonly inputTokens: number | null
      /** Null = not reported. */
      readonly outputTokens: number | null
      /** USD as a decimal text; null = unknown. */
      readonly cost: string | null
    }
  /**
   * Live events were lost, or are no longer kept: drop what was shown of an unfinished answer. What follows is what a
   * reader who joins now gets; what was seen before may come once more, under the same ids.
   */
  | { readonly type: 'resync' }

/** Whether viewers of the chat at the top are told of it too, where a sub-chat tells it: what asks somebody something. */
export function isForRoot({ type }: LiveEvent): boolean {
  switch (type) {
    case 'approval.requested':
    case 'approval.decided':
    case 'input.requested':
    case 'input.answered':
      return true
    default:
      return false
  }
}

/** An event as a reader gets it. */
export type ChatEvent = LiveEvent & {
  /**
   * Hand it to `events({ after })` to go on from here. Events that were made from rows while a reader joins have '0-0',
   * which stands for no place in the stream: whoever goes on from it gets `resync`, and joins afresh.
   */
  readonly id: string
  /** The chat that it happened to. */
  readonly chatId: string
  /** Which take of the chat it comes from; 0 = from outside any run. Of one made from rows: the latest take. */
  readonly claimToken: number
}
