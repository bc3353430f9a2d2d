import { expect } from 'chai'
import type { ToolCallRow } from '../../../models/rows.ts'
import { chatId, type Stage } from './stage.ts'

const faults = new WeakMap<Stage, string[]>()

/** From now on what each move of a run writes is held against the rows of that moment, which others may have changed. */
export function watchMoves(stage: Stage): void {
  const seen: string[] = []
  faults.set(stage, seen)
  const { rows } = stage.ports
  const { openUsage, takeQueued, startToolCall, transcript, toolCalls } = rows
  // The tools approved for the rest of the chat as the run read last: one that is taken back after that look comes too late for it.
  let allowed = new Set<string>()
  const look = () => {
    allowed = new Set(
      stage.tables.toolCalls(chatId).flatMap((call) => (call.approval === 'remembered' ? call.name : [])),
    )
  }
  rows.transcript = async (...of) => {
    look()
    return transcript(...of)
  }
  rows.toolCalls = async (messageId) => {
    look()
    return toolCalls(messageId)
  }
  rows.openUsage = async (usage) => {
    if (openOf(stage).length > 0) seen.push('the model was asked while calls were open')
    return openUsage(usage)
  }
  rows.takeQueued = async (key, take) => {
    const open = openOf(stage)
    const taken = await takeQueued(key, take)
    if (taken && open.length > 0) seen.push('a queued message came between calls and their results')
    return taken
  }
  rows.startToolCall = async (key, call) => {
    const before = openOf(stage).find(({ id }) => id === call.id)
    const started = await startToolCall(key, call)
    if (!started) return started
    if (before === undefined) seen.push('a call was begun that is not open')
    else if (before.approval === 'denied') seen.push('a denied call was begun')
    else if (before.name === 'gated' && !mayRun(before, allowed)) seen.push('a call was begun that nobody allowed')
    return started
  }
}

/** No move so far was one that the rows forbade. */
export function checkMoves(stage: Stage): void {
  expect(faults.get(stage) ?? [], 'moves').to.eql([])
}

/** Decided for itself, or by one of its tool that was approved for good. */
function mayRun({ approval, name }: ToolCallRow, allowed: ReadonlySet<string>): boolean {
  return approval === 'approved' || approval === 'remembered' || allowed.has(name)
}

function openOf({ tables }: Stage): ToolCallRow[] {
  const last = tables.messages(chatId).findLast(({ role }) => role === 'user' || role === 'assistant')
  return tables.toolCalls(chatId).filter((call) => call.resultId === null && call.messageId === last?.id)
}
