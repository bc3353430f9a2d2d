import type { Bell, TranscriptMessage } from '../../models/rows.ts'
import { CancelledError, ContextTooLargeError, ToolRoundLimitError } from '../errors.ts'
import type { MoveName } from '../observability/observation.ts'
import { closeAbandoned } from './close-calls.ts'
import { compactByItself } from './compact-by-itself.ts'
import { contextOf } from './context-limits.ts'
import { type ContextPressure, decide, type Move } from './decide.ts'
import { type Ending, handedOver, resting } from './ending.ts'
import { generate } from './generate.ts'
import { parkedEnding } from './paused-calls.ts'
import { pendingToolCalls } from './pending-tool-calls.ts'
import { reconsiderable } from './reconsider.ts'
import { factsOf, type RunContext } from './run-context.ts'
import { runTools } from './run-tools.ts'
import { settleCancelled } from './settle-cancelled.ts'
import { takeQueued } from './take-queued.ts'
import { openCalls } from './transcript.ts'
import { transfer } from './transfer.ts'
import { tellAnswered } from './turn-end.ts'

export interface Moved {
  readonly ending: Ending
  /** The last message that was stored, null where none was. */
  readonly produced: TranscriptMessage | null
}

/** The loop. */
export async function moveOn(run: RunContext): Promise<Moved> {
  let produced: TranscriptMessage | null = null
  let unchanged = 0
  for (;;) {
    run.claim.signal.throwIfAborted()
    const move = narrowed(run, nextMove(run, await contextOf(run)))
    if (isWork(move) && belongsElsewhere(run, move)) return { ending: handedOver(queueFor(run, move)), produced }
    // What others recorded since this run last looked comes before the next model call.
    if ((move.kind === 'generate' || move.kind === 'compact') && !run.fresh) {
      await run.refresh()
      continue
    }
    switch (move.kind) {
      case 'settle-cancelled':
        await made(run, move.kind, () => settleCancelled(run, move.open))
        throw cancelled(run.chat.id)
      case 'run-tools': {
        const before = run.transcript.length
        const changed = await made(run, move.kind, () => runTools(run, move.message, move.calls))
        if (run.transcript.length > before) produced = run.transcript.at(-1) ?? null
        if (changed === 0) await run.refresh()
        // A call that can neither run nor wait must not keep the run busy.
        unchanged = changed === 0 ? unchanged + 1 : 0
        if (unchanged > 1) return { ending: parkedEnding(run), produced }
        break
      }
      case 'transfer':
        if (!(await made(run, move.kind, () => transfer(run, move.to))))
          return { ending: handedOver('complete'), produced }
        continue
      case 'take-queued':
        if (move.startsTurn) await tellAnswered(run)
        if (!(await made(run, move.kind, () => takeQueued(run, move)))) await run.refresh()
        continue
      case 'generate': {
        const message = await made(run, move.kind, async () => {
          await closeAbandoned(run, move.abandoned)
          return generate(run)
        })
        if (message === null) {
          await run.refresh()
          continue
        }
        produced = message
        break
      }
      case 'compact':
        if ((await made(run, move.kind, () => compactByItself(run, move.keep))) === 'pause') {
          return { ending: resting, produced }
        }
        continue
      case 'stop-context':
        throw contextTooLarge(run, move)
      case 'stop-rounds':
        throw roundLimit(run.chat.id, move.limit)
      case 'park':
        return { ending: parkedEnding(run), produced }
      case 'rest':
        return { ending: resting, produced }
      default:
        return move satisfies never
    }
    if (run.order.verb !== 'complete') return { ending: endingAfterOneMove(run), produced }
  }
}

/** Tells of a move that was made; one that throws ends the run, which tells of itself. */
async function made<T>(run: RunContext, move: MoveName, work: () => Promise<T>): Promise<T> {
  const begun = performance.now()
  const result = await work()
  run.report.moves++
  run.ports.observe({ type: 'move.made', ...factsOf(run), move, durationMs: performance.now() - begun })
  return result
}

function nextMove(run: RunContext, context: ContextPressure | null): Move {
  const options = { roundLimit: run.configuration.rounds, reconsider: reconsiderable(run), context }
  return decide({ ...run.look, transcript: run.transcript }, options)
}

/** This process is ending, or the move is for the workers of another queue. A direct caller makes every move itself. */
function belongsElsewhere(run: RunContext, move: Move): boolean {
  const { by, stopping } = run.order
  return stopping?.() === true || (by !== 'caller' && by !== queueFor(run, move))
}

/** Verbs that are for one kind of move take no other. */
function narrowed(run: RunContext, move: Move): Move {
  if (move.kind === 'settle-cancelled' || run.order.verb === 'complete' || run.order.verb === 'step') return move
  const open = openCalls(run.transcript)
  if (run.order.verb === 'runTools') return move.kind === 'run-tools' || move.kind === 'park' ? move : { kind: 'rest' }
  if (open.length > 0) throw pendingToolCalls(run.chat.id, open)
  // It asks whatever the transcript says, so a cancel ends it whatever the transcript says.
  if (run.chat.cancelTurn === run.chat.turn) return { kind: 'settle-cancelled', open: [] }
  const asks = ['generate', 'compact', 'stop-context', 'transfer'].includes(move.kind)
  return asks ? move : { kind: 'generate', abandoned: [] }
}

function isWork(move: Move): boolean {
  switch (move.kind) {
    case 'run-tools':
    case 'take-queued':
    case 'compact':
    case 'generate':
      return true
    default:
      return false
  }
}

/** Which workers a move belongs to. */
function queueFor(run: RunContext, move: Move): Bell {
  return move.kind === 'run-tools' && run.configuration.agent.toolExecution === 'queue' ? 'runTools' : 'complete'
}

/** A caller who moves by hand decides about the next move too: only what somebody else wished for stays wished for. */
function endingAfterOneMove(run: RunContext): Ending {
  const next = nextMove(run, null)
  if (isWork(next) && run.chat.wantedAt !== null) return handedOver(queueFor(run, next))
  return next.kind === 'park' ? parkedEnding(run) : resting
}

/** What a cancelled turn ends with. */
export function cancelled(chatId: string): CancelledError {
  return new CancelledError(
    `The turn of chat ${chatId} was cancelled. complete() asks it again; a new message starts another.`,
    {
      chatId,
    },
  )
}

function contextTooLarge(run: RunContext, { tokens, limit }: Move & { kind: 'stop-context' }): ContextTooLargeError {
  return new ContextTooLargeError(
    `The next request of chat ${run.chat.id} would take up about ${tokens} tokens of ${limit}, and no summary can make it fit. ` +
      'Send a shorter message, shorten instructions or tools, or choose a model with a larger context.',
    { chatId: run.chat.id, ...(run.compactionFailure === null ? {} : { cause: run.compactionFailure }) },
  )
}

function roundLimit(chatId: string, limit: number): ToolRoundLimitError {
  return new ToolRoundLimitError(
    `The turn of chat ${chatId} used up its ${limit} tool rounds; every call has its result. complete() allows ${limit} more.`,
    { chatId },
  )
}
