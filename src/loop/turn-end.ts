import type { Failure, TranscriptMessage } from '../../models/rows.ts'
import { missingAgent } from './ending.ts'
import { factsOf, type RunContext } from './run-context.ts'
import { tellParent } from './sub-chats.ts'
import { hasPendingWork, latestResponse } from './transcript.ts'

// The agent is told of a turn's end while the chat is held, and the release records that it was. A process that dies in
// between leaves the wish, so the next one finds the turn at rest and not told of, and tells again.

/** Tells the agent that the turn is answered, where it is and where it was not told yet. Returns whether it told. */
export async function tellAnswered(run: RunContext): Promise<boolean> {
  const { turn, endedTurn, cancelledTurn } = run.chat
  if (endedTurn === turn || cancelledTurn === turn) return false
  const message = latestResponse(run.transcript) ?? (await summarisedResponse(run))
  if (message?.role !== 'assistant' || hasPendingWork(run.transcript)) return false
  await tellParent(run, { kind: 'answered', content: message.content ?? '' })
  run.ports.observe({ type: 'turn.ended', ...factsOf(run), outcome: 'answered' })
  await run.ports.tellTurnEnd(run.chat, { kind: 'answered', turn, message })
  return true
}

/** The latest response where a summary stands for it too, so that the run did not read it. */
async function summarisedResponse(run: RunContext): Promise<TranscriptMessage | null> {
  if (run.look.summaryThrough === null) return null
  return latestResponse(await run.ports.rows.transcript(run.chat.id, null))
}

export async function tellCancelled(run: RunContext): Promise<void> {
  await tellParent(run, { kind: 'cancelled' })
  run.ports.observe({ type: 'turn.ended', ...factsOf(run), outcome: 'cancelled' })
  await run.ports.tellTurnEnd(run.chat, { kind: 'cancelled', turn: run.chat.turn })
}

export async function tellFailed(
  { ports, chat, claim }: Pick<RunContext, 'ports' | 'chat' | 'claim'>,
  failure: Failure | null,
): Promise<boolean> {
  if (failure === null) return false
  // A worker that has what is missing takes the turn up again when it starts, and the call above waits for it.
  if (failure.code !== missingAgent)
    await tellParent({ ports, chat, claim }, { kind: 'failed', message: failure.message })
  ports.observe({ type: 'turn.ended', ...factsOf({ chat }), outcome: 'failed' })
  await ports.tellTurnEnd(chat, { kind: 'failed', turn: chat.turn, failure })
  return true
}
