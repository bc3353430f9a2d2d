import { userMessage } from '../../models/new-message.ts'
import type { MessageRow, QueuedMessageRow } from '../../models/rows.ts'
import { factsOf, type RunContext } from './run-context.ts'

/** Moves waiting messages into the transcript. False = one of them was unqueued meanwhile: look again. */
export async function takeQueued(
  run: RunContext,
  move: { readonly which: 'steering' | 'all'; readonly startsTurn: boolean },
): Promise<boolean> {
  const { rows, clock } = run.ports
  const queue = await rows.queue(run.chat.id)
  const queued = move.which === 'all' ? queue : queue.filter((row) => row.steer)
  const messages = queued.map((row) => userMessage(run.chat.id, clock.newId(), row))
  const taken =
    queued.length > 0 && (await rows.takeQueued(run.claim, { queued, messages, startsTurn: move.startsTurn }))
  run.fresh = false
  if (!taken) return false
  const stored = messages.map((message) => run.append(message))
  for (const [at, message] of messages.entries()) {
    run.publish({ type: 'dequeued', queuedId: queued[at]?.id ?? '', messageId: message.id })
  }
  run.chat.turn += move.startsTurn ? 1 : 0
  if (move.startsTurn) Object.assign(run.chat, { rounds: 0, compactions: 0 })
  run.look = { ...run.look, queued: remaining(run, queued.length, move.which) }
  run.ports.observe({
    type: 'queued.taken',
    ...factsOf(run),
    messages: messages.length,
    startsTurn: move.startsTurn,
  })
  for (const [at, row] of queued.entries()) await tellDequeued(run, stored[at], row)
  return true
}

async function tellDequeued(run: RunContext, message: MessageRow | undefined, queued: QueuedMessageRow): Promise<void> {
  if (message === undefined || !run.hooks.has('afterDequeue')) return
  const { records } = run.ports
  await run.hooks.call('afterDequeue', records.message(message), records.queuedMessage(queued))
}

function remaining(run: RunContext, taken: number, which: 'steering' | 'all') {
  const { total } = run.look.queued
  return which === 'all' ? { steering: 0, total: 0 } : { steering: 0, total: Math.max(0, total - taken) }
}
