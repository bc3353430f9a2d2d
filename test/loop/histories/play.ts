import { userMessage } from '../../../models/new-message.ts'
import type { QueuedMessageRow } from '../../../models/rows.ts'
import { ThreadmillError } from '../../../src/errors.ts'
import { run } from '../../../src/loop/run.ts'
import type { RunOrder } from '../../../src/loop/run-context.ts'
import { openCalls } from '../../../src/loop/transcript.ts'
import { cancelTurn } from '../../memory/cancelling.ts'
import { decide } from '../../memory/decisions.ts'
import type { MemoryTables } from '../../memory/tables.ts'
import { enqueueMessage, stageMessage } from '../../memory/writers.ts'
import { checkAsks, checkEnd, checkMove } from './checks.ts'
import type { Act, Event, History } from './history.ts'
import { chatId, Stage } from './stage.ts'
import { checkMoves, watchMoves } from './watch.ts'

/**
 * Plays a history to its end, where every call is decided and every message answered, and checks on the way.
 * @throws what is wrong.
 */
export async function play(history: History, spoil: (stage: Stage) => void = () => {}): Promise<void> {
  const accepted = new Set<string>()
  const perform = (stage: Stage, act: Act) => act_(stage, act, accepted)
  const stage = new Stage(history, perform)
  spoil(stage)
  watchMoves(stage)
  for (const event of history.events) {
    checkMove(stage)
    await happen(stage, event, accepted)
    checkMoves(stage)
    checkAsks(stage)
  }
  await settle(stage)
  checkMoves(stage)
  checkEnd(stage, accepted)
}

async function happen(played: Stage, event: Event, accepted: Set<string>): Promise<void> {
  switch (event.kind) {
    case 'ask': {
      const id = played.newId('asked')
      if (openCalls(played.tables.transcript(chatId, null)).length > 0) return
      const message = { id, content: id, attachments: null }
      const toMessage = (queued: QueuedMessageRow) => userMessage(chatId, queued.id, queued)
      stageMessage(played.tables, { chatId, message, want: false, pending: {}, toMessage })
      accepted.add(id)
      return
    }
    case 'run':
      return drive(played, { chatId, verb: event.verb, by: 'caller' })
    case 'job':
      return drive(played, { chatId, verb: 'complete', by: 'complete' })
    default:
      act_(played, event, accepted)
  }
}

function act_(played: Stage, act: Act, accepted: Set<string>): void {
  const { tables, claims } = played
  switch (act.kind) {
    case 'queue': {
      const id = played.newId('queued')
      const message = { id, content: id, attachments: null, owner: null }
      enqueueMessage(tables, { chatId, ...message, steer: act.steer, wake: true })
      accepted.add(id)
      return
    }
    case 'unqueue': {
      const queue = tables.queue(chatId)
      const row = queue[act.pick % Math.max(1, queue.length)]
      if (row !== undefined && tables.unqueue([row.id])) accepted.delete(row.content ?? '')
      return
    }
    case 'decide': {
      const open = openCalls(tables.transcript(chatId, null))
      const call = open[act.pick % Math.max(1, open.length)]
      // Someone who lets a call run that no process has the tool of waits for one that has.
      const impossible = call?.name === 'unknown' && act.approval !== 'denied'
      if (call !== undefined && !impossible) decideCall(tables, call.id, act.approval)
      return
    }
    case 'cancel':
      if (cancelTurn(tables, chatId, null).length > 0) claims.cancelled(chatId)
      return
    default:
      act satisfies never
  }
}

function decideCall(tables: MemoryTables, call: string, approval: 'approved' | 'remembered' | 'denied'): void {
  const bound = { ifUndecided: false, arguments: null, argumentsHash: null }
  decide(tables, { chatId, call, approval, by: null, reason: null, wake: true, ...bound })
}

/** Runs, and takes what a run may end with: an error of the library's own, or that of a tool. */
async function drive(played: Stage, order: RunOrder): Promise<void> {
  try {
    await run(played.ports, order)
  } catch (error) {
    if (!(error instanceof ThreadmillError) && !(error instanceof TypeError && error.message === 'a bug')) throw error
  }
}

/** Decides whatever waits and runs, until nothing changes any more. */
async function settle(played: Stage): Promise<void> {
  const { tables, ports } = played
  // A history can hold its chat up so often and no more.
  for (let times = 0; times < 60; times++) {
    const waiting = openCalls(tables.transcript(chatId, null)).filter((call) => call.approval === 'pending')
    for (const { id } of waiting) decideCall(tables, id, 'approved')
    const before = marks(played)
    await drive(played, { chatId, verb: 'complete', by: 'caller' })
    const { chat } = await ports.rows.look(chatId)
    if (before === marks(played) && chat.wantedAt === null) return
  }
}

/** What changes whenever something was done. */
function marks({ tables, requests }: Stage): string {
  const { chat, queued } = tables.look(chatId)
  const decisions = tables.toolCalls(chatId).map((call) => call.approval)
  return [chat.nextPosition, chat.cancelledTurn, queued.total, requests.length, ...decisions].join()
}
