/** A value that JSON can hold. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type JsonObject = { [key: string]: Json }

export type Role = 'system' | 'user' | 'assistant' | 'tool'
export type Approval = 'pending' | 'approved' | 'remembered' | 'denied'
/** What an attempt was for: an answer, or a summary of the chat. */
export type UsageOperation = 'chat' | 'compaction'
export type UsageStatus = 'pending' | 'succeeded' | 'failed' | 'cancelled'
/** The queues that a wake-up can ring. */
export type Bell = 'complete' | 'runTools' | 'compact'

/** Why a chat stopped, as kept in `chats.failure` until someone tries again. */
export type Failure = {
  code: string
  message: string
  turn: number
  /** ISO 8601. */
  at: string
}

/** What a chat was configured with beside its agent. A missing key means "as the agent says". */
export type ChatSettings = {
  temperature?: number
  maxOutputTokens?: number
  /** Names of tools, resolved by the process that runs the chat. */
  tools?: string[]
  /** False: not by itself. */
  compaction?: CompactionSettings | false
}

/** When and how a chat's history is summarised by itself. */
export type CompactionSettings = {
  /** From 0 to 1: that share of the model's context window; above 1: that many tokens. */
  at: number
  /** What the summary is to keep, in place of the standing instruction. */
  instructions?: string
  /** True: the run ends after the summary; the next complete goes on with the turn. */
  pauseAfter?: boolean
  /** The model that writes the summary, of the same provider; left out, the chat's own. */
  model?: string
  /** So many of the latest messages stay as they are. */
  keep?: number
}

/** One row of `chats`. Times are by the database's clock. */
export interface ChatRow {
  id: string
  agent: string | null
  model: string | null
  provider: string | null
  owner: string | null
  settings: ChatSettings
  nextPosition: number
  nextQueuePosition: number
  claimedBy: string | null
  claimedUntil: Date | null
  claimToken: number
  wantedAt: Date | null
  wantedSeq: number
  /** Never `compact`: a wish for a summary has columns of its own, so that neither wish can swallow the other. */
  wantedQueue: Bell | null
  /** Runs taken since the last committed message, dead ones included. */
  attempts: number
  /** How often workers that lack the agent or a tool have put the chat off. */
  putOff: number
  /** Tool rounds of this turn so far. */
  rounds: number
  failure: Failure | null
  /** Counts turns; a cancel names the turn that it means. */
  turn: number
  cancelTurn: number | null
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
  parked: boolean
  createdAt: Date
  updatedAt: Date
}

/** One row of `messages`: one message of the transcript, ordered by `position` alone. */
export interface MessageRow {
  id: string
  chatId: string
  position: number
  role: Role
  content: string | null
  thinkingText: string | null
  thinkingSignature: string | null
  /** Reasoning items that the provider wants back unchanged. */
  rawReasoning: Json | null
  citations: Json[] | null
  finishReason: string | null
  /** Of tool results: how the call ended. */
  outcome: ToolOutcome | null
  /** Of summaries: the position up to which this one stands for the transcript, system messages aside. Null for every other message. */
  summaryThrough: number | null
  createdAt: Date
  updatedAt: Date
}

/** How a tool call ended: it ran, it ran and reported an error, someone denied it, or it never finished. */
export type ToolOutcome = 'succeeded' | 'failed' | 'denied' | 'interrupted'

/** One row of `tool_calls`, ordered by `position` within its message. */
export interface ToolCallRow {
  /** Also the idempotency key: it exists before the first run and never changes. */
  id: string
  chatId: string
  messageId: string
  resultId: string | null
  position: number
  /** Unique across the table; `providerCallId` holds what the provider sent where that could not serve. */
  toolCallId: string
  providerCallId: string | null
  name: string
  namespace: string | null
  arguments: JsonObject
  malformedArguments: string | null
  thoughtSignature: string | null
  approval: Approval | null
  remote: boolean
  /** Whether the tool was offered to the model in the request that led to this call. */
  offered: boolean
  claimedBy: string | null
  claimedUntil: Date | null
  startedAt: Date | null
  /** What a paused call waits on; null when it is not paused. */
  mcpState: JsonObject | null
  createdAt: Date
  updatedAt: Date
}

/** One row of `queued_messages`: a user message that waits for its place in the transcript. */
export interface QueuedMessageRow {
  id: string
  chatId: string
  position: number
  content: string | null
  /** True: joins the running turn before its next model call. False: starts the next turn. */
  steer: boolean
  /** Stored and handed back, never interpreted. */
  owner: Json | null
  createdAt: Date
}

/** One row of `usages`: one physical attempt at a model. Tokens are null where the provider reported none; costs are USD. */
export interface UsageRow {
  id: string
  chatId: string
  /** The message that the attempt led to; null where it led to none. */
  messageId: string | null
  /** The id that the attempt's message was to have, and that viewers saw its text under. */
  answerId: string | null
  operation: UsageOperation
  provider: string
  model: string
  status: UsageStatus
  claimToken: number
  inputTokens: number | null
  outputTokens: number | null
  cacheReadTokens: number | null
  cacheWriteTokens: number | null
  thinkingTokens: number | null
  inputCost: string | null
  outputCost: string | null
  cacheReadCost: string | null
  cacheWriteCost: string | null
  totalCost: string | null
  errorCode: string | null
  createdAt: Date
  updatedAt: Date
}

/** A message with the calls it requested, as the loop reads them. */
export interface TranscriptMessage extends MessageRow {
  toolCalls: ToolCallRow[]
}
