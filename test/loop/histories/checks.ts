import { expect } from 'chai'
import type { ToolCallRow } from '../../../models/rows.ts'
import { decide, type Move } from '../../../src/loop/decide.ts'
import { findFault } from '../../../src/testing/check-request.ts'
import type { WireRequest } from '../../../src/testing/wire.ts'
import { chatId, type Stage } from './stage.ts'

const checked = new WeakMap<Stage, number>()

/** The move that comes next is not one that the rows forbid, whatever they are. */
export function checkMove({ tables }: Stage): void {
  const look = tables.look(chatId)
  const transcript = tables.transcript(chatId, null)
  const move = decide({ ...look, transcript }, { roundLimit: 50, reconsider: () => false, context: null })
  const rows = {
    calls: tables.toolCalls(chatId),
    last: transcript.findLast((message) => message.role !== 'system') ?? null,
    lastResponse: transcript.findLast((message) => message.role === 'user' || message.role === 'assistant') ?? null,
    queued: look.queued,
    cancelled: look.chat.cancelTurn === look.chat.turn,
    stopped: look.chat.cancelledTurn === look.chat.turn,
  }
  const open = rows.calls.filter((call) => call.resultId === null && call.messageId === rows.lastResponse?.id)
  const fault = forbidden(move, { ...rows, open })
  if (fault !== null) expect.fail(`${move.kind}: ${fault}`)
}

interface Facts {
  readonly open: readonly ToolCallRow[]
  readonly last: { readonly role: string } | null
  readonly queued: { readonly total: number; readonly steering: number }
  readonly cancelled: boolean
  readonly stopped: boolean
}

/** Why the rows forbid a move; null where they do not. Said in other words than `decide` says it. */
function forbidden(move: Move, { open, last, queued, cancelled, stopped }: Facts): string | null {
  const waits = (call: ToolCallRow) => call.approval === 'pending'
  const owed = last !== null && last.role !== 'assistant'
  switch (move.kind) {
    case 'settle-cancelled':
      return cancelled ? null : 'nobody cancelled this turn'
    case 'run-tools':
      if (move.calls.length === 0) return 'there is nothing to run'
      if (move.calls.some(waits)) return 'a call waits for a decision'
      return move.calls.every(({ id }) => open.some((call) => call.id === id)) ? null : 'a call is not open'
    case 'park':
      return open.length > 0 && open.every(waits) ? null : 'a call can go on'
    case 'take-queued':
      if (open.length > 0) return 'a message would come between calls and results'
      if (move.which === 'steering') return queued.steering > 0 && owed ? null : 'nothing steers a running turn'
      return queued.total > 0 ? null : 'nothing is queued'
    case 'generate':
      if (open.length > 0) return 'calls are open'
      if (cancelled || stopped) return 'the turn was cancelled'
      return owed ? null : 'no answer is owed'
    case 'rest':
      if (queued.total > 0) return 'messages wait'
      return open.length === 0 && (!owed || stopped) ? null : 'the turn has work'
    case 'transfer':
      return 'there is one agent'
    case 'compact':
    case 'stop-context':
    case 'stop-rounds':
      return 'neither limit is in force'
    default:
      return move satisfies never
  }
}

/** Every request since the last look could be sent, and said what the rows say. */
export function checkAsks(stage: Stage): void {
  const from = checked.get(stage) ?? 0
  checked.set(stage, stage.requests.length)
  for (const body of stage.requests.slice(from)) {
    const { messages } = body as WireRequest
    const fault = findFault(messages)
    if (fault !== null) expect.fail(fault)
    const made = messages.flatMap((message) => message.tool_calls ?? []).length
    const answered = messages.filter((message) => message.role === 'tool').length
    expect(answered).to.equal(made)
  }
}

/** Nothing is left, nothing was lost, nothing came twice. */
export function checkEnd(stage: Stage, accepted: ReadonlySet<string>): void {
  checkAsks(stage)
  const { tables, executions } = stage
  const look = tables.look(chatId)
  const transcript = tables.transcript(chatId, null)
  expect(look.queued.total, 'queued').to.equal(0)
  expect(look.claimed, 'claimed').to.equal(false)
  expect(look.chat.wantedAt, 'wanted').to.equal(null)
  expect(look.chat.cancelTurn, 'cancelled').to.equal(null)
  const last = transcript.at(-1)
  if (last !== undefined) expect(last.role, 'the last message').to.equal('assistant')

  const calls = tables.toolCalls(chatId)
  const results = transcript.filter((message) => message.role === 'tool').map(({ id }) => id)
  expect(calls.map((call) => call.resultId).toSorted(), 'one result a call').to.deep.equal(results.toSorted())
  expect(new Set(calls.map((call) => call.toolCallId)).size).to.equal(calls.length)
  for (const call of calls) {
    const times = executions.get(call.id) ?? 0
    expect(times, `runs of a call to ${call.name}`).to.be.at.most(1)
    if (call.malformedArguments !== null || call.name === 'unknown') expect(times).to.equal(0)
    if (call.name === 'gated' && times === 1) expect(['approved', 'remembered', null]).to.include(call.approval)
  }
  const said = transcript.filter((message) => message.role === 'user').map(({ content }) => content)
  expect(said.toSorted(), 'what users said').to.deep.equal([...accepted].toSorted())
  expect(tables.usages, 'usage entries').to.have.length(stage.requests.length)
  expect(tables.usages.filter((usage) => usage.status === 'pending')).to.have.length(0)
}
