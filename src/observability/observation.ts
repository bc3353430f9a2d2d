import type { Approval, Bell, ToolOutcome, UsageOperation, UsageStatus } from '../../models/rows.ts'
import type { ErrorFacts } from './error-facts.ts'

// What happens in this process, for those who operate it. Viewers of a chat are told other things, by src/events.

/** A run, as everything that happens in it names it. */
export interface RunFacts {
  readonly chatId: string
  /** The number of the turn. Null where the run ended before its chat could be read. */
  readonly turn: number | null
  /** The epoch of the claim, as in live events and usage entries. Null as `turn` is. */
  readonly claimToken: number | null
}

/** Why a chat that a job or a caller wanted to run was not taken. `deadly`: it has cost processes, and runs alone or not at all. */
export type Refusal = 'claimed' | 'not-wanted' | 'agent-missing' | 'deadly'

/**
 * How a run ended. `answered`, `cancelled` and `failed` end the turn too; `retry` and `put-off` come back by themselves;
 * `moved` is a caller's single move, `compacted` a run that made a summary alone, `idle` a run that found nothing to do, `chat-gone` that of a chat deleted meanwhile.
 */
export type RunOutcome =
  | 'answered'
  | 'idle'
  | 'moved'
  | 'compacted'
  | 'parked'
  | 'handed-over'
  | 'cancelled'
  | 'failed'
  | 'retry'
  | 'put-off'
  | 'claim-lost'
  | 'chat-gone'

export type MoveName = 'settle-cancelled' | 'run-tools' | 'transfer' | 'take-queued' | 'generate' | 'compact'

/**
 * What a job came to; all but the last two are what it returns. Of a chat that has cost processes: it `runs alone later`, since there is no
 * room now; its process `died alone`, or its turn `failed alone`, as that process's log tells.
 */
export type JobEnd =
  | 'done'
  | 'waiting'
  | 'not wanted'
  | 'claimed elsewhere'
  | 'put off'
  | 'handed over'
  | 'claim lost'
  | 'runs alone later'
  | 'died alone'
  | 'failed alone'
  | 'cancelled'
  | 'failed'

type Observed<Type extends string, Facts> = Readonly<{ type: Type } & Facts>

export type RunTaken = Observed<
  'run.taken',
  RunFacts & {
    by: 'caller' | Bell
    verb: string
    /** The name of the agent; null for a chat without one. */
    agent: string | null
    /** Ms from the time the chat was due to the take, by the database's clock. Null: nobody had asked for it. */
    waitedMs: number | null
  }
>
export type RunEnded = Observed<
  'run.ended',
  RunFacts & {
    outcome: RunOutcome
    agent: string | null
    moves: number
    durationMs: number
    /** What ended it, where something did. */
    error: ErrorFacts | null
    /** When the next run is due, of `retry` and `put-off`. */
    retryInMs: number | null
  }
>
export type ModelEnded = Observed<
  'model.ended',
  RunFacts & {
    messageId: string
    /** Whether it was asked for an answer or for a summary. */
    operation: UsageOperation
    provider: string
    /** The model that was asked. */
    model: string
    /** The model that answered, in the provider's words. */
    responseModel: string | null
    responseId: string | null
    status: Exclude<UsageStatus, 'pending'>
    /** Counts the attempts at one answer from 1. */
    attempt: number
    /** Tokens, cached ones counted apart from `inputTokens`. Null = not reported. */
    inputTokens: number | null
    outputTokens: number | null
    cacheReadTokens: number | null
    cacheWriteTokens: number | null
    thinkingTokens: number | null
    /** A decimal. Null = unknown. */
    costUsd: string | null
    /** Ms to the first text or thinking that was shown. Null: none was. */
    firstTokenMs: number | null
    durationMs: number
    finishReason: string | null
    error: ErrorFacts | null
    /** The text of the answer, cut. Null unless content is observed. */
    content: string | null
  }
>
export type UsageUnwritten = Observed<
  'usage.unwritten',
  RunFacts & {
    /** The entry; the last one where several led to one message. Null: those that dead runs left open. */
    usageId: string | null
    /** When the attempt began, when it ended, when its message was stored, or after its run had died. */
    step: 'open' | 'close' | 'link' | 'orphan'
    error: ErrorFacts
  }
>
export type ToolEnded = Observed<
  'tool.ended',
  RunFacts & {
    /** `unknown` for a name that the chat has no tool for. */
    tool: string
    toolCallId: string
    /** `abandoned`: the run lost its chat or its process while the tool ran, and no result was stored. */
    outcome: ToolOutcome | 'abandoned' | 'paused'
    /** Whether the tool was executed; a denied call, for one, is not. */
    executed: boolean
    /** Ms; 0 where it was not executed. */
    durationMs: number
    error: ErrorFacts | null
    /** Cut. Null unless content is observed. */
    arguments: string | null
    result: string | null
  }
>

/**
 * Everything that a process observes. No text of a message, no argument, no result and no secret is in it; the fields that
 * hold content are null unless `connect({ observeContent: true })` asks for them. Durations are in ms.
 *
 * A field means the same in each of them: `chatId`, `turn` and `claimToken` the run; `agent` the name of the chat's agent;
 * `by` the queue whose job it is, or `caller`; `queue` and `job` a queue and the name of its job; `tool` and `toolCallId` a
 * call; `provider` and `model` who was asked; `attempt` counts from 1; `code` and `error` what went wrong, null where
 * nothing did; `outcome`, `why` and `approval` what was decided; `durationMs` how long it took, `delayMs` how long it is
 * put off, `waitedMs` how long it had been due, `quietMs` how long nothing was heard of it; `pid` a process of one chat, null for this
 * one; `deaths` how many processes died over a chat, and `lastDeath` how the last of them ended; `messages`, `rung`, `complete`,
 * `runTools` and `compact` are counts.
 */
export type Observation =
  | Observed<'run.refused', { chatId: string; by: 'caller' | Bell; why: Refusal }>
  | RunTaken
  | RunEnded
  /** Told again where a process died before it could store that it told. */
  | Observed<'turn.ended', RunFacts & { outcome: 'answered' | 'cancelled' | 'failed' }>
  | Observed<'move.made', RunFacts & { move: MoveName; durationMs: number }>
  | ModelEnded
  /** A failed attempt is made again after a pause. */
  | Observed<
      'model.retry',
      RunFacts & { provider: string; model: string; attempt: number; delayMs: number; code: string }
    >
  /** The database refused a write of the ledger: the turn goes on without it. (S83) */
  | UsageUnwritten
  | ToolEnded
  | Observed<'approval.requested', RunFacts & { tool: string; toolCallId: string }>
  | Observed<'approval.decided', { chatId: string; tool: string; toolCallId: string; approval: Approval }>
  /** A summary was tried. `failed`: a turn that needed none goes on without it. */
  | Observed<
      'compaction.ended',
      RunFacts & {
        outcome: 'stored' | 'nothing' | 'stopped' | 'failed'
        durationMs: number
        error: ErrorFacts | null
      }
    >
  /** Waiting messages joined the transcript. */
  | Observed<'queued.taken', RunFacts & { messages: number; startsTurn: boolean }>
  /** Seen while the run goes on; its `run.ended` follows. */
  | Observed<'claim.lost', { chatId: string }>
  /** A renewal came later than twice its period. `gapMs`: since the last good one. */
  | Observed<'claim.renewed-late', { chatId: string; gapMs: number }>
  /** The thread that renews claims ended by itself; another is started. */
  | Observed<'renewal.restarted', Record<never, never>>
  /** Redis gave no lock; the database decides alone. */
  | Observed<'lock.missing', { chatId: string; error: ErrorFacts }>
  /** A worker without the chat's agent leaves it to others. */
  | Observed<'chat.put-off', { chatId: string; agent: string; delayMs: number }>
  /** No worker had the chat's agent for too long. */
  | Observed<'chat.failed', { chatId: string; agent: string; code: string }>
  /** Processes died over a chat, so it is run alone: in a process of its own, or in this one where `pid` is null. */
  | Observed<'alone.started', { chatId: string; queue: Bell; deaths: number; pid: number | null }>
  /** That is over. `died`: the process ended without giving the chat back, with `how`. */
  | Observed<
      'alone.ended',
      {
        chatId: string
        queue: Bell
        pid: number | null
        outcome: 'ended' | 'died'
        /** The signal or exit code that it died with; null where it did not. */
        how: string | null
        durationMs: number
      }
    >
  /** A chat was given up since processes died over it; `lastDeath`: how the last of them ended, where it is known. */
  | Observed<'chat.quarantined', RunFacts & { agent: string | null; deaths: number; lastDeath: string | null }>
  | Observed<'ring.lost', { chatId: string; queue: Bell; error: ErrorFacts }>
  | Observed<'sweep.ended', { rung: number; durationMs: number }>
  | Observed<'job.started', { queue: Bell; job: string; chatId: string; waitedMs: number }>
  | Observed<
      'job.ended',
      { queue: Bell; job: string; chatId: string; outcome: JobEnd; durationMs: number; code: string | null }
    >
  | Observed<'events.dropped', { chatId: string; error: ErrorFacts }>
  | Observed<'pool.started', { complete: number; runTools: number; compact: number }>
  | Observed<'pool.closed', { durationMs: number }>
  /** A worker that could take jobs asked for none, or got no answer, for `quietMs` of a running event loop. It was made anew. */
  | Observed<'worker.renewed', { queue: Bell; quietMs: number }>
  /** Making it anew did not help: only a new process may. Told once, until it is heard of again. */
  | Observed<'worker.stuck', { queue: Bell; quietMs: number }>
  /** A worker that was made anew takes jobs. */
  | Observed<'worker.recovered', { queue: Bell }>
  /** A hook of the application threw, or took too long: then the error is null. The run goes on. */
  | Observed<'hook.trouble', { chatId: string; agent: string | null; hook: string; error: ErrorFacts | null }>
  /** Something that this process does by itself failed and is tried again. `doing` says what, in plain words. */
  | Observed<'database.trouble', { doing: string; error: ErrorFacts }>
  | Observed<'redis.trouble', { doing: string; error: ErrorFacts }>
  /** A sentence for the operator, such as that an embedded Redis is in use. */
  | Observed<'notice', { message: string }>

/** Told of what happens in this process, at once and in order. */
export type Observe = (observation: Observation) => void
