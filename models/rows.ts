import type { AttachmentValue } from './attachment-value.ts'
import type { ChatSettings } from './setting-values.ts'

export type * from './attachment-value.ts'
export type * from './decision-row.ts'
export type * from './model-row.ts'
export type * from './receipt-row.ts'
export type * from './setting-values.ts'

/** A value that JSON can hold. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
/** An object that JSON can hold. */
export type JsonObject = { [key: string]: Json }

/** Whose message it is. A `tool` message is the result of one tool call. */
export type Role = 'system' | 'user' | 'assistant' | 'tool'
/** A decision about a tool call: asked for, given, given for the rest of the chat as well, or refused. */
export type Approval = 'pending' | 'approved' | 'remembered' | 'denied'
/** What an attempt was for: an answer, or a summary of the chat. */
export type UsageOperation = 'chat' | 'compaction'
/** How an attempt at a model stands: under way (or its process died), answered, failed, or cancelled. */
export type UsageStatus = 'pending' | 'succeeded' | 'failed' | 'cancelled'
/** The queues that a wake-up can ring. */
export type Bell = 'complete' | 'runTools' | 'compact'

/** Why a chat stopped, as kept in `chats.failure` until someone tries again. */
export type Failure = {
  /** The `code` of the error that ended the turn, a tool's own included; `error` where it had none. */
  code: string
  /** The message of that error. */
  message: string
  /** The turn that was given up. */
  turn: number
  /** ISO 8601. */
  at: string
}

/** To which agent a chat goes, as kept in `chats.transfer_to`. */
export type Transfer = {
  /** The name of the agent. */
  agent: string
  /** What its instructions are made with; null = nothing. */
  inputs: JsonObject | null
}

/** One row of `chats`. Times are by the database's clock. */
export interface ChatRow {
  /** A UUIDv7. */
  id: string
  /** The name of the agent that runs the chat; null for one without. */
  agent: string | null
  /** The model asked in place of the agent's; null = as the agent says. */
  model: string | null
  /** The provider that goes with `model`; null = as the agent says. */
  provider: string | null
  /** The row of `models` that `model` and `provider` name; null where the chat names no model. */
  modelRowId: string | null
  /** What the application said the chat belongs to, as one text; `chat.owner` gives it in the form given. */
  owner: string | null
  /** The chat that this one was forked from; null for one that was not. That chat may be gone. */
  forkedFrom: string | null
  /** The position of its last message that was copied; null where none was, and for a chat that was not forked. */
  forkedPosition: number | null
  /** The chat whose tool call this sub-chat answers; null for a chat of its own. (E90) */
  parentId: string | null
  /** That call, by the id of its row; null for a chat of its own. */
  parentCallId: string | null
  /** The chat at the top of a sub-chat's tree; null for a chat of its own. */
  rootId: string | null
  /** How many chats a sub-chat has above it; 0 for a chat of its own. */
  depth: number
  /** The agent that goes on once the open round is whole; null = nobody else. (E97) */
  transferTo: Transfer | null
  /** What the instructions of its agent are made with; null where nothing was given. (E94) */
  inputs: JsonObject | null
  /** What the chat was configured with beside its agent. */
  settings: ChatSettings
  /** The position of the next message. */
  nextPosition: number
  /** The position of the next queued message. */
  nextQueuePosition: number
  /** The id of the present take, made anew for each; null when nobody holds the chat. (R11) */
  claimedBy: string | null
  /** When the claim lapses unless it is renewed; null when nobody holds the chat. */
  claimedUntil: Date | null
  /** Counts takes: the epoch that events and usage entries carry. */
  claimToken: number
  /** When the chat is wanted to run; null when nobody wants it. (R22) */
  wantedAt: Date | null
  /** Counts wishes, so that a run notices one that came meanwhile. (R19) */
  wantedSeq: number
  /** Never `compact`: a wish for a summary has columns of its own, so that neither wish can swallow the other. */
  wantedQueue: Bell | null
  /** Runs taken since the last committed message, dead ones included. */
  attempts: number
  /**
   * Processes that died over the chat since its last committed move, as far as takes have found them. A claim that lapsed since is one
   * more. (E120)
   */
  deaths: number
  /** How the process ended that last died while it ran the chat alone; null where nobody saw it. */
  lastDeath: string | null
  /** How often workers that lack the agent or a tool have put the chat off. */
  putOff: number
  /** Tool rounds of this turn so far. */
  rounds: number
  /** Why the turn was given up; null when it was not. (R25) */
  failure: Failure | null
  /** Counts turns; a cancel names the turn that it means. */
  turn: number
  /** The turn that a pending cancel means; null when there is none. (R28) */
  cancelTurn: number | null
  /** `wantedSeq` as of that cancel; null when there is none. */
  cancelSeq: number | null
  /** The last turn that a cancel ended: it is asked again only by an explicit complete or enqueue. */
  cancelledTurn: number | null
  /** The last turn whose end the agent was told of. */
  endedTurn: number | null
  /** When a summary is wanted; null when none is. */
  compactAt: Date | null
  /** Counts the wishes for a summary. */
  compactSeq: number
  /** Runs taken for the present wish for a summary, dead ones included. */
  compactAttempts: number
  /** Summaries that this turn has asked for by itself. */
  compactions: number
  /** Whether the chat waits for something outside: a decision, a result. (R4) */
  parked: boolean
  /** When the chat was made. */
  createdAt: Date
  /** When the row was last written. */
  updatedAt: Date
}

/** One row of `messages`: one message of the transcript, ordered by `position` alone. */
export interface MessageRow {
  /** A UUIDv7. For an answer: the one that chunks and events carried before the row existed. (R29) */
  id: string
  /** The chat that the message belongs to. */
  chatId: string
  /** Its place in the transcript. (R1) */
  position: number
  /** Whose message it is. */
  role: Role
  /** Its text; null for an answer that has tool calls only. */
  content: string | null
  /** Reasoning that the provider showed; null where it showed none. */
  thinkingText: string | null
  /** The provider's proof of the reasoning, sent back unchanged; null where it sent none. */
  thinkingSignature: string | null
  /** Reasoning items that the provider wants back unchanged. */
  rawReasoning: Json | null
  /** Sources, in the provider's form; null where it named none. */
  citations: Json[] | null
  /** Why the answer ended, in the provider's words; `cancelled` for one that was stopped. Null for other messages. */
  finishReason: string | null
  /** Of tool results: how the call ended. */
  outcome: ToolOutcome | null
  /** Of tool results: whether the content is the text that the tool returned, or JSON. Null for other messages, and where nobody knows. */
  encoding: ToolEncoding | null
  /** Whether the provider is to keep the prompt up to here in its cache, and for how long; null = not asked for. */
  cacheBoundary: CacheBoundary | null
  /** Its files, in their order; null where it has none. */
  attachments: AttachmentValue[] | null
  /** Of summaries: the position up to which this one stands for the transcript, system messages aside. Null for every other message. */
  summaryThrough: number | null
  /** When the row was written. */
  createdAt: Date
  /** When the row was last written. */
  updatedAt: Date
}

/** How a tool call ended: it ran, it ran and reported an error, someone denied it, or it never finished. */
export type ToolOutcome = 'succeeded' | 'failed' | 'denied' | 'interrupted'

/** How the content of a tool result is written. */
export type ToolEncoding = 'text' | 'json'

/** The end of a part of the prompt that the provider is to keep; `ttl` in the provider's words, as `5m` or `1h`. */
export type CacheBoundary =
  | true
  | {
      /** In the provider's words. */
      ttl: string
    }

/** One row of `tool_calls`, ordered by `position` within its message. */
export interface ToolCallRow {
  /** Also the idempotency key: it exists before the first run and never changes. */
  id: string
  /** The chat that the call belongs to. */
  chatId: string
  /** The assistant message that requested the call. */
  messageId: string
  /** The tool message that answers it; null while the call is pending. (R2) */
  resultId: string | null
  /** Its place in the model's answer, from 0. */
  position: number
  /** Unique across the table; `providerCallId` holds what the provider sent where that could not serve. */
  toolCallId: string
  /** The id that the provider sent, where another had to serve; else null. */
  providerCallId: string | null
  /** The tool's name, as the model wrote it. */
  name: string
  /** Where the tool comes from, for tools that have such a place; else null. */
  namespace: string | null
  /** What the model passed; `{}` when that was not one JSON object. */
  arguments: JsonObject
  /** The text that was not one JSON object, as the model wrote it; else null. */
  malformedArguments: string | null
  /** The provider's proof of the reasoning behind the call, sent back unchanged; else null. */
  thoughtSignature: string | null
  /** The decision about it; null where none was asked for or made. (R4) */
  approval: Approval | null
  /** Whether the provider itself executes it. */
  remote: boolean
  /** Whether the tool was offered to the model in the request that led to this call. */
  offered: boolean
  /** The take under which it is being executed; null when it is not. */
  claimedBy: string | null
  /** When that claim lapses unless it is renewed; null when nobody executes the call. */
  claimedUntil: Date | null
  /** When it last began; null when it never did. Kept until its result. (R17, R18) */
  startedAt: Date | null
  /** What a paused call waits on; null when it is not paused. */
  mcpState: JsonObject | null
  /** The arguments that a person put in place of the model's; null where nobody did. */
  editedArguments: JsonObject | null
  /** Who made the latest decision about it, in the application's words; null where nobody said. */
  decidedBy: string | null
  /** Why, as whoever decided said. */
  decisionReason: string | null
  /** Since when a decision is waited for; null where none is. */
  askedAt: Date | null
  /** When that is no longer waited for; null = never. */
  expiresAt: Date | null
  /** When the row was written. */
  createdAt: Date
  /** When the row was last written. */
  updatedAt: Date
}

/** One row of `queued_messages`: a user message that waits for its place in the transcript. */
export interface QueuedMessageRow {
  /** A UUIDv7. */
  id: string
  /** The chat that it waits for. */
  chatId: string
  /** Its place in the queue. */
  position: number
  /** Its text. */
  content: string | null
  /** Its files, in their order; null where it has none. */
  attachments: AttachmentValue[] | null
  /** True: joins the running turn before its next model call. False: starts the next turn. */
  steer: boolean
  /** Stored and handed back, never interpreted. */
  owner: Json | null
  /** The owner as one text, where it is a text or a type and an id; else null. */
  ownerKey: string | null
  /** When it was queued. */
  createdAt: Date
}

/** One row of `usages`: one physical attempt at a model. Tokens are null where the provider reported none; costs are USD. */
export interface UsageRow {
  /** A UUIDv7. */
  id: string
  /** The chat that the attempt was made for. */
  chatId: string
  /** What the chat belonged to when the attempt began, as one text. */
  owner: string | null
  /** The message that the attempt led to; null where it led to none. */
  messageId: string | null
  /** The id that the attempt's message was to have, and that viewers saw its text under. */
  answerId: string | null
  /** What it was for. */
  operation: UsageOperation
  /** The provider asked. */
  provider: string
  /** The model asked. */
  model: string
  /** How it stands. */
  status: UsageStatus
  /** The take of the chat that made it. */
  claimToken: number
  /** Cached input not counted. */
  inputTokens: number | null
  /** Reasoning included, where the provider counts it so. */
  outputTokens: number | null
  /** Input that came from the provider's cache. */
  cacheReadTokens: number | null
  /** Input that was written to the provider's cache. */
  cacheWriteTokens: number | null
  /** The part of the output that was reasoning. */
  thinkingTokens: number | null
  /** USD as a decimal text, frozen when the attempt ended; null when unknown. So are the others. */
  inputCost: string | null
  /** USD of the output. */
  outputCost: string | null
  /** USD of the cached input. */
  cacheReadCost: string | null
  /** USD of writing to the cache. */
  cacheWriteCost: string | null
  /** USD of the whole attempt; null when any used part has no known price or the tokens are unknown. */
  totalCost: string | null
  /** The `code` of the error that it failed with; null when it did not. */
  errorCode: string | null
  /** When it began. */
  createdAt: Date
  /** When it ended. */
  updatedAt: Date
}

/** A message with the calls it requested, as the loop reads them. */
export interface TranscriptMessage extends MessageRow {
  /** The calls that an assistant message requested, in the model's order; empty for every other message. */
  toolCalls: ToolCallRow[]
}
