import { aloneFrom, setAsideAt } from '../../models/deaths.ts'
import type { ChatState } from '../../models/overview.ts'
import { missingAgent } from '../loop/ending.ts'
import { type Damage, mending, wordsOf } from '../loop/soundness.ts'
import { hasPendingWork, openCalls } from '../loop/transcript.ts'
import type { Evidence, WaitsFor } from './diagnose.ts'

/** What to do about a chat. `text` says it in words, with the command where there is one. */
export interface Advice {
  /**
   * `nothing`: it is as it should be. `decide`: approve or deny calls. `answer`: answer questions of calls, or decline.
   * `start-worker`: no process can run it. `enqueue`: nobody asked for it to be run. `retry`: it was given up. `repair`: its rows
   * hold what can't be read.
   */
  readonly act: 'nothing' | 'decide' | 'answer' | 'start-worker' | 'enqueue' | 'retry' | 'repair'
  /** The same for a person, with the command where there is one. */
  readonly text: string
}

interface Finding {
  readonly why: string
  readonly advice: Advice
}

export function adviceFor(state: ChatState, evidence: Evidence, waitsFor: readonly WaitsFor[]): Finding {
  switch (state) {
    case 'running':
      return running(evidence)
    case 'failed':
      return failed(evidence)
    case 'due':
      return due(evidence)
    case 'put off':
      return putOff(evidence)
    case 'wanted':
      return wanted(evidence)
    case 'parked':
      return waitsFor.length > 0 ? waiting(waitsFor, evidence) : resting(evidence)
    case 'idle':
      return resting(evidence, waitsFor)
    default:
      return state satisfies never
  }
}

/** Before all other advice, but for a chat that runs: nobody can run it as it is. Null where nothing keeps it. (E106) */
export function damagedAdvice(state: ChatState, damage: readonly Damage[], chatId: string): Finding | null {
  const stopping = damage.filter(({ stops }) => stops)
  if (stopping.length === 0 || state === 'running') return null
  return {
    why: `Its rows hold what can't be read: ${wordsOf(stopping)}.`,
    advice: { act: 'repair', text: `${mending} Then: threadmill retry --force ${chatId}` },
  }
}

/** The processes that died over a chat; a claim that lapsed was that of one that is gone. */
export function deathsOf({ chat, claimed }: Pick<Evidence, 'chat' | 'claimed'>): number {
  return chat.deaths + (!claimed && chat.claimedBy !== null ? 1 : 0)
}

const nothing = (text: string): Advice => ({ act: 'nothing', text: `nothing: ${text}` })
const time = (at: Date | null) => at?.toISOString() ?? 'an unknown time'
const times = (count: number) => (count === 1 ? 'once' : `${count} times`)

function running({ chat }: Evidence): Finding {
  const cancels = chat.cancelTurn !== null && chat.cancelTurn === chat.turn
  const process =
    chat.deaths < aloneFrom
      ? 'A process'
      : `Since ${chat.deaths} processes died over it, one that runs no other such chat`
  return {
    why: cancels ? `${process} runs it, and is about to carry out a cancel.` : `${process} runs it.`,
    advice: nothing(
      `it runs; its claim lapses at ${time(chat.claimedUntil)} unless it is renewed, and another worker goes on then`,
    ),
  }
}

function failed({ chat }: Evidence): Finding {
  const { code, message, at } = chat.failure ?? { code: 'error', message: '', at: '' }
  const why = `Its turn was given up at ${at}: ${message} (${code})`
  if (code === missingAgent) return { why, advice: startWorker(chat, 'the chat then goes on by itself') }
  return { why, advice: { act: 'retry', text: `put right what failed, then: threadmill retry ${chat.id}` } }
}

function due(evidence: Evidence): Finding {
  const { chat, workers, now } = evidence
  const deaths = deathsOf(evidence)
  const died = chat.claimedBy !== null && chat.claimedUntil !== null
  const since = Math.max(0, Math.round((now.getTime() - (chat.wantedAt ?? now).getTime()) / 1_000))
  const why = died
    ? `The process that ran it is gone: its claim lapsed at ${time(chat.claimedUntil)}.`
    : `It has been due for ${since} s, and no worker has taken it.`
  if (workers !== 0 && deaths >= setAsideAt) {
    return { why: `${why} It is the ${deaths}th that died over it.`, advice: nothing('a worker sets it aside') }
  }
  if (workers !== 0 && deaths >= aloneFrom) {
    const room = 'a worker runs it alone as soon as it has room for that'
    return { why: `${why} ${deaths} processes have died over it.`, advice: nothing(room) }
  }
  if (workers === 0) return { why: `${why} No worker is connected.`, advice: startWorker(chat) }
  if (chat.putOff > 0) return { why, advice: startWorker(chat) }
  return { why, advice: nothing('a worker takes it as soon as one is free; if none does, start one more') }
}

function putOff({ chat }: Evidence): Finding {
  return {
    why:
      `Workers put it off ${times(chat.putOff)}, since they lack ${chat.agent === null ? '' : 'its agent or '}one of its tools; ` +
      `they look again at ${time(chat.wantedAt)}.`,
    advice: startWorker(chat),
  }
}

function wanted({ chat }: Evidence): Finding {
  const at = time(chat.wantedAt)
  const why =
    chat.attempts > 0
      ? `Its last ${chat.attempts === 1 ? 'run' : `${chat.attempts} runs`} failed in a way that may pass; the next begins at ${at}.`
      : `It is wanted at ${at}.`
  return { why, advice: nothing(`it runs by itself then; to run it now: threadmill enqueue ${chat.id}`) }
}

function startWorker(chat: Evidence['chat'], more?: string): Advice {
  const agent = chat.agent === null ? '' : ` that has agent ${JSON.stringify(chat.agent)}`
  return { act: 'start-worker', text: `start a worker${agent}${more === undefined ? '' : `; ${more}`}` }
}

function waiting(waitsFor: readonly WaitsFor[], { chat, queued }: Evidence): Finding {
  const approvals = waitsFor.filter(({ kind }) => kind === 'approval')
  const questions = waitsFor.filter(({ kind }) => kind === 'answer')
  const held =
    queued.total === 0
      ? ''
      : ` ${queued.total} queued ${queued.total === 1 ? 'message waits' : 'messages wait'} behind that.`
  if (approvals.length > 0) {
    return {
      why: `It waits for a decision about ${named(approvals)}.${held}`,
      advice: { act: 'decide', text: `approve or deny ${approvals.map(({ toolCallId }) => toolCallId).join(', ')}` },
    }
  }
  if (questions.length > 0) {
    const ids = questions.map(({ toolCallId }) => toolCallId).join(', ')
    return {
      why: `It waits for an answer to ${named(questions)}.${held}`,
      advice: { act: 'answer', text: `answer or decline what ${ids} asks` },
    }
  }
  const subChats = waitsFor.flatMap(({ subChatId }) => subChatId ?? [])
  if (subChats.length > 0) {
    return {
      why: `It waits for agents that answer ${named(waitsFor)}.${held}`,
      advice: nothing(`they work in chats of their own: threadmill status ${subChats[0]}`),
    }
  }
  return {
    why: `It waits for what ${named(waitsFor)} began elsewhere.${held}`,
    advice: nothing(`a worker looks how it stands at ${time(chat.wantedAt)}`),
  }
}

const named = (calls: readonly WaitsFor[]) => calls.map(({ name, toolCallId }) => `${name} (${toolCallId})`).join(', ')

/** Nobody wants it. */
function resting(evidence: Evidence, waitsFor: readonly WaitsFor[] = []): Finding {
  const { chat, transcript, queued } = evidence
  const pending = hasPendingWork(transcript)
  if (pending && chat.cancelledTurn === chat.turn && queued.total === 0) {
    return {
      why: 'Its turn was cancelled.',
      advice: nothing(`it was stopped on purpose; to ask again: threadmill enqueue ${chat.id}`),
    }
  }
  if (waitsFor.length > 0 && openCalls(transcript).length === waitsFor.length) return waiting(waitsFor, evidence)
  if (pending || queued.total > 0) {
    return {
      why: `${pending ? 'Its last message has no answer yet' : 'Messages wait in its queue'}, and nobody asked for it to be run.`,
      advice: { act: 'enqueue', text: `threadmill enqueue ${chat.id}` },
    }
  }
  if (transcript.length === 0)
    return { why: 'It has no message yet.', advice: nothing('it waits for its first message') }
  return { why: 'Its last turn is answered.', advice: nothing('it waits for the next message') }
}
