import type { ChatState } from '../../models/overview.ts'
import type { Bell, ChatRow, Failure, Role, ToolCallRow, TranscriptMessage } from '../../models/rows.ts'
import type { ChatLook } from '../../models/transcript.ts'
import { openRequests, openSubChat } from '../../models/waiting.ts'
import { damages } from '../loop/soundness.ts'
import { isPaused, isSummary, isWaiting, openCalls } from '../loop/transcript.ts'
import { type Advice, adviceFor, damagedAdvice, deathsOf } from './diagnosis-advice.ts'

/** The rows that a diagnosis rests on. */
export interface Evidence extends Pick<ChatLook, 'claimed' | 'due' | 'queued'> {
  readonly chat: Pick<
    ChatRow,
    | 'id'
    | 'agent'
    | 'claimedBy'
    | 'claimedUntil'
    | 'claimToken'
    | 'wantedAt'
    | 'wantedQueue'
    | 'attempts'
    | 'deaths'
    | 'lastDeath'
    | 'putOff'
    | 'rounds'
    | 'failure'
    | 'turn'
    | 'cancelTurn'
    | 'cancelledTurn'
    | 'compactAt'
    | 'parked'
  >
  readonly transcript: readonly TranscriptMessage[]
  /** The database's clock. */
  readonly now: Date
  /** How many worker processes are connected to the queue that the chat needs; null = not known. */
  readonly workers: number | null
}

/** A tool call that has to be settled from outside before the chat can go on. */
export interface WaitsFor {
  /** The call's public id: what `approve` and `deny` take. */
  readonly toolCallId: string
  /** The tool's name. */
  readonly name: string
  /**
   * `approval`: somebody's decision. `answer`: one to a question of its tool. `task`: work that goes on elsewhere. `sub-chat`: another
   * agent's answer.
   */
  readonly kind: 'approval' | 'answer' | 'task' | 'sub-chat'
  /** The chat in which that agent answers; left out for the others. */
  readonly subChatId?: string
}

/** Why a chat moves or does not, as its rows say. Times are by the database's clock. */
export interface Diagnosis {
  /** The chat. */
  readonly chatId: string
  /** The name of its agent; null for one without. */
  readonly agent: string | null
  /** Where it stands. */
  readonly state: ChatState
  /** One sentence: what keeps it, or moves it. */
  readonly why: string
  /** The one thing that is safe to do about it. */
  readonly advice: Advice
  /** When it was looked at. */
  readonly at: Date
  /** Who holds it: the id and the number of the take, and when it lapses unless it is renewed; null when nobody does. */
  readonly claim: {
    /** The UUID of the take. */
    readonly id: string
    /** Counts takes. */
    readonly token: number
    /** When the claim lapses. */
    readonly lapsesAt: Date
    /** The same in ms from `at`. */
    readonly lapsesInMs: number
  } | null
  /** What it is wanted for; null when nobody wants it. `inMs` is negative for how long it has been due. */
  readonly wish: {
    /** When it is wanted. */
    readonly at: Date
    /** The same in ms from now; negative = overdue. */
    readonly inMs: number
    /** The queue whose workers are rung. */
    readonly queue: Bell
  } | null
  /** When a summary of it is wanted, which holds nothing up; null when none is. */
  readonly summaryAt: Date | null
  /** What has to be settled from outside; empty when nothing has. */
  readonly waitsFor: readonly WaitsFor[]
  /** Whether a cancel of the turn waits to be carried out. */
  readonly cancelPending: boolean
  /** Messages that wait for their place in the transcript. */
  readonly queued: number
  /** Counts turns, from 1 on; 0 before the first. */
  readonly turn: number
  /** Tool rounds of the turn so far. */
  readonly rounds: number
  /** Runs since the last stored message, those that died included. */
  readonly attempts: number
  /** Processes that died over it since its last committed move. From two on it runs alone, after five it is set aside. (E120) */
  readonly deaths: number
  /** How the last of them ended, where it ran nothing else and somebody saw it; else null. */
  readonly lastDeath: string | null
  /** How often workers have put it off. */
  readonly putOff: number
  /** The last message of the transcript: how far it got. */
  readonly lastMessage: {
    /** Its place in the transcript. */
    readonly position: number
    /** Whose message it is. */
    readonly role: Role
    /** When it was stored. */
    readonly at: Date
  } | null
  /** Why the turn was given up; null when it was not. */
  readonly failure: Failure | null
  /** What of its rows can't be read, in words; empty when all of it can. (E106) */
  readonly damage: readonly string[]
}

/** Says of rows why their chat moves or does not. Pure. */
export function diagnose(evidence: Evidence): Diagnosis {
  const { chat, transcript, now, queued } = evidence
  const state = stateOf(evidence)
  const waitsFor = openCalls(transcript).filter(isWaiting).map(waitOf)
  const last = transcript.findLast((message) => !isSummary(message))
  const damage = damages(chat, transcript)
  const { why, advice } = damagedAdvice(state, damage, chat.id) ?? adviceFor(state, evidence, waitsFor)
  return {
    chatId: chat.id,
    agent: chat.agent,
    state,
    why,
    advice,
    at: now,
    claim: claimOf(evidence),
    wish:
      chat.wantedAt === null
        ? null
        : { at: chat.wantedAt, inMs: chat.wantedAt.getTime() - now.getTime(), queue: chat.wantedQueue ?? 'complete' },
    summaryAt: chat.compactAt,
    waitsFor,
    cancelPending: chat.cancelTurn !== null && chat.cancelTurn === chat.turn,
    queued: queued.total,
    turn: chat.turn,
    rounds: chat.rounds,
    attempts: chat.attempts,
    deaths: deathsOf(evidence),
    lastDeath: chat.lastDeath,
    putOff: chat.putOff,
    lastMessage: last === undefined ? null : { position: last.position, role: last.role, at: last.createdAt },
    failure: chat.failure,
    damage: damage.map(({ what }) => what),
  }
}

/** The same order as in `chatTotals`. */
function stateOf({ chat, claimed, due }: Evidence): ChatState {
  if (claimed) return 'running'
  if (chat.failure !== null) return 'failed'
  if (due) return 'due'
  if (chat.wantedAt !== null && chat.putOff > 0) return 'put off'
  if (chat.parked) return 'parked'
  return chat.wantedAt === null ? 'idle' : 'wanted'
}

function claimOf({ chat, claimed, now }: Evidence): Diagnosis['claim'] {
  if (!claimed || chat.claimedBy === null || chat.claimedUntil === null) return null
  return {
    id: chat.claimedBy,
    token: chat.claimToken,
    lapsesAt: chat.claimedUntil,
    lapsesInMs: chat.claimedUntil.getTime() - now.getTime(),
  }
}

function waitOf(call: ToolCallRow): WaitsFor {
  const { toolCallId, name } = call
  const subChat = openSubChat(call)
  if (subChat !== null) return { toolCallId, name, kind: 'sub-chat', subChatId: subChat.id }
  const paused = openRequests(call).length > 0 ? 'answer' : 'task'
  return { toolCallId, name, kind: isPaused(call) ? paused : 'approval' }
}
