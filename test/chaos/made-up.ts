import type { ChatRow, ToolCallRow, UsageRow } from '../../models/rows.ts'
import type { JournalEntry } from '../../src/testing/crashes/journal.ts'
import type { LoggedRequest, WireMessage } from '../../src/testing/index.ts'
import type { Decision, Said } from './book.ts'
import type { ChatEvidence, Evidence } from './evidence.ts'
import { headers } from './messages.ts'

/** A turn of a chat that is made up for a test of the checks. */
export interface Turn {
  readonly question: string
  /** The tools of its one round; without any it is answered at once. */
  readonly calls: readonly string[]
}

/** What went wrong with it. Questions and tools are named. */
export interface Change {
  readonly row?: Partial<ChatRow>
  readonly said?: readonly Said[]
  readonly decisions?: readonly Decision[]
  readonly tally?: Evidence['tally']
  readonly queued?: readonly string[]
  readonly without?: { readonly answer: string }
  /** The result of this tool is linked to no call. */
  readonly unlinked?: string
  /** This question is answered twice. */
  readonly doubled?: string
  /** The answer to this question was made without what came before it. */
  readonly askedBefore?: string
  /** By which claim each question was answered; 1 by default. */
  readonly tokens?: Readonly<Record<string, number>>
  /** The answer to this question is asked for once more. */
  readonly again?: { readonly question: string; readonly token: number }
  readonly executedAgain?: string
  readonly denied?: string
  /** When the worker died, in ms since the epoch; it lives by default. */
  readonly diedAt?: number
}

type MadeUpMessage = ChatEvidence['messages'][number]

const chatId = 'chat'
const worker = 'worker-1'

/** The evidence of one chat that was run by one worker, which went well but for what is changed. */
export function madeUp(turns: readonly Turn[], change: Change = {}): Evidence {
  const messages: MadeUpMessage[] = []
  const wire: WireMessage[] = []
  const requests: LoggedRequest[] = []
  const usages: UsageRow[] = []
  const ledger: JournalEntry[] = []
  const tokenFor = (question: string) => change.tokens?.[question] ?? 1
  const add = (message: Partial<MadeUpMessage>) => {
    const id = `message-${messages.length}`
    const all = {
      id,
      chatId,
      position: messages.length,
      finishReason: null,
      summaryThrough: null,
      toolCalls: [],
      ...message,
    }
    messages.push(all as unknown as MadeUpMessage)
    return id
  }
  const ask = (token: number, sent: readonly WireMessage[]) => {
    const id = `req_${requests.length + 1}`
    const named = { [headers.chat]: chatId, [headers.worker]: worker, [headers.token]: String(token) }
    requests.push({ id, chat: chatId, headers: named, messages: [...sent] } as unknown as LoggedRequest)
    usages.push({ id, status: 'succeeded', model: worker, claimToken: token, messageId: null } as UsageRow)
    return id
  }
  const pay = (request: string, messageId: string) =>
    Object.assign(usages.find(({ id }) => id === request) ?? {}, { messageId })
  const answer = (question: string) => {
    const sent = change.askedBefore === question ? wire.slice(-1) : wire
    const request = ask(tokenFor(question), sent)
    if (change.again?.question === question) ask(change.again.token, sent)
    if (change.without?.answer === question) return
    const content = `${request} answers ${question}`
    pay(request, add({ role: 'assistant', content }))
    wire.push({ role: 'assistant', content })
  }
  const execute = (question: string, name: string) => {
    const key = `call-${question}-${name}`
    const entry = { pid: 1, tool: name, key, chatId, execution: ledger.length, time: 1_000 + 1_000 * ledger.length }
    ledger.push({ at: 'begun', ...entry }, { at: 'returned', ...entry })
    if (change.executedAgain === name) ledger.push({ at: 'begun', ...entry, time: entry.time + 5_000 })
  }
  for (const { question, calls } of turns) {
    add({ role: 'user', content: question })
    wire.push({ role: 'user', content: question })
    if (calls.length > 0) {
      const request = ask(tokenFor(question), wire)
      const rows = calls.map((name) => callOf(question, name, request, change.denied === name))
      pay(request, add({ role: 'assistant', content: null, toolCalls: rows }))
      const sent = rows.map(({ toolCallId, name }) => ({
        ...{ id: toolCallId, type: 'function' as const, function: { name, arguments: '{}' } },
      }))
      wire.push({ role: 'assistant', content: null, tool_calls: sent })
      for (const row of rows) {
        execute(question, row.name)
        const resultId = add({ role: 'tool', content: 'done' })
        row.resultId = change.unlinked === row.name ? 'nowhere' : resultId
        wire.push({ role: 'tool', tool_call_id: row.toolCallId, content: 'done' })
      }
    }
    answer(question)
    if (change.doubled === question) answer(question)
  }
  const row = {
    id: chatId,
    turn: turns.length,
    nextPosition: messages.length,
    parked: false,
    ...restingRow,
    ...change.row,
  }
  const said = turns
    .filter(({ question }, at) => turns.findIndex((turn) => turn.question === question) === at)
    .map(({ question: text }, at): Said => {
      return { chatId, text, steer: null, begun: 10 * at + 1, ended: 10 * at + 2, heard: 'accepted', unqueued: 'no' }
    })
  return {
    database: 'mysql',
    chats: [
      {
        row: row as ChatRow,
        messages,
        usages,
        queued: change.queued?.length ?? 0,
        queue: (change.queued ?? []).map((content) => ({ content })),
      },
    ],
    book: { said: [...said, ...(change.said ?? [])], decisions: [...(change.decisions ?? [])], cancels: [] },
    ...{ ledger, requests, takes: [], stalls: [], silences: [] },
    lives: [{ name: worker, pid: 1, from: 0, to: change.diedAt ?? null }],
    tally: change.tally ?? { deaths: [], freezes: [], outages: [] },
  }
}

const restingRow = { claimedBy: null, wantedAt: null, cancelTurn: null, cancelledTurn: null, failure: null }

function callOf(question: string, name: string, request: string, denied: boolean): ToolCallRow {
  const id = `call-${question}-${name}`
  const approval = denied ? 'denied' : null
  return {
    id,
    toolCallId: `sent-${id}`,
    name,
    arguments: { of: request },
    approval,
    resultId: null,
    mcpState: null,
  } as unknown as ToolCallRow
}
