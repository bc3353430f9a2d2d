import { claimLost, type TakeFor, type Untaken } from '../../models/claims.ts'
import type { Bell, ChatRow, TranscriptMessage } from '../../models/rows.ts'
import {
  AttemptsExhaustedError,
  CancelledError,
  ChatNotFoundError,
  ClaimLostError,
  type QuarantinedError,
  ShutdownError,
} from '../errors.ts'
import { eventToolCall } from '../events/tool-call.ts'
import type { Refusal, RunOutcome } from '../observability/observation.ts'
import { deathsBelow, isFailing, isLeftForDeaths, quarantined } from './deaths.ts'
import { attemptsOf, type Ending, endingOf, failureOf } from './ending.ts'
import { type Moved, moveOn } from './move-on.ts'
import type { HeldClaim } from './ports.ts'
import { readRows } from './read-rows.ts'
import { type LoopPorts, RunContext, type RunOrder } from './run-context.ts'
import { RunReport } from './run-report.ts'
import { isSummary, latestMessage, openCalls } from './transcript.ts'
import { tellAnswered, tellFailed } from './turn-end.ts'
import { closeOrphanedUsages } from './usage-entries.ts'

export type RunResult =
  /** Nobody ran: another process holds the chat, it is not wanted, or this process lacks its agent. */
  | { readonly kind: 'refused'; readonly untaken: Untaken }
  /** The claim was lost on the way: whoever holds the chat now goes on. */
  | { readonly kind: 'lost' }
  | ({ readonly kind: 'ended' } & Driven)

/**
 * Claims a chat, then decides and moves until nothing is left to do, it must wait, or the order was for less; gives it
 * back; and looks again, so that what was recorded meanwhile is done before this returns.
 * @throws whatever ended the turn: {@link CancelledError}, a {@link ProviderError}, a tool's own error, ...
 */
export async function run(ports: LoopPorts, order: RunOrder): Promise<RunResult> {
  let last = null as Driven | null
  for (;;) {
    const taken = await ports.claims.take(order.chatId, last === null ? takeFor(order) : 'job', deathsBelow(order))
    if (taken.kind === 'refused') {
      if (last !== null) return { kind: 'ended', ...last }
      ports.observe({
        type: 'run.refused',
        chatId: order.chatId,
        by: order.by,
        why: refusal(ports, taken.untaken, order),
      })
      return taken
    }
    const driven: Driven | 'lost' = await drive(ports, order, taken.claim)
    if (driven === 'lost') return { kind: 'lost' }
    last = { ...driven, produced: driven.produced ?? last?.produced ?? null }
    if (last.handedTo !== null) await ports.bell.ring(order.chatId, last.handedTo)
    const goOn = order.verb === 'complete' && last.handedTo === null && (await isWantedAgain(ports, order.chatId))
    if (!goOn) return { kind: 'ended', ...last }
  }
}

function refusal(ports: LoopPorts, { claimed, dueForMs, ...untaken }: Untaken, order: RunOrder): Refusal {
  if (claimed) return 'claimed'
  if (order.by !== 'caller' && (dueForMs === null || dueForMs < 0)) return 'not-wanted'
  return isLeftForDeaths(ports, untaken, order) ? 'deadly' : 'agent-missing'
}

function takeFor(order: RunOrder): TakeFor {
  if (order.by !== 'caller') return 'job'
  return order.verb === 'complete' ? 'complete' : 'verb'
}

/** The look after the release: what was recorded while the chat was held rang for nobody. */
async function isWantedAgain(ports: LoopPorts, chatId: string): Promise<boolean> {
  const { chat, claimed, due } = await ports.rows.look(chatId)
  return due && !claimed && chat.failure === null
}

interface Driven {
  /** The last message that this run stored, null where it stored none. */
  readonly produced: TranscriptMessage | null
  /** The message that the transcript ends with, system messages aside; null too where a summary stands for all of it. */
  readonly latest: TranscriptMessage | null
  /** The queue whose workers go on with the turn. */
  readonly handedTo: Bell | null
  /** Whether the chat was left to wait for something outside. */
  readonly parked: boolean
}

/** One run under one claim. The claim is over when this returns, whatever happens. */
function drive(ports: LoopPorts, order: RunOrder, claim: HeldClaim): Promise<Driven | 'lost'> {
  const { chatId, verb, by } = order
  return ports.within({ kind: 'run', chatId, verb, by }, (report) =>
    driveObserved(ports, order, claim, new RunReport(ports, order, report)),
  )
}

async function driveObserved(
  ports: LoopPorts,
  order: RunOrder,
  claim: HeldClaim,
  report: RunReport,
): Promise<Driven | 'lost'> {
  let context: RunContext | null = null
  try {
    context = await begin(ports, order, claim, report)
    const outcome = await moveOn(context)
    const turnEnded = outcome.ending.wish.kind === 'none' && !outcome.ending.parked && (await tellAnswered(context))
    await release(context, outcome.ending, turnEnded)
    report.ended(outcomeOf(order, outcome), { turn: context.chat.turn })
    const { wish } = outcome.ending
    return {
      produced: outcome.produced,
      latest: latestMessage(context.transcript),
      handedTo: wish.kind === 'now' ? wish.queue : null,
      parked: outcome.ending.parked,
    }
  } catch (error) {
    return await fail(ports, order, claim, { context, report }, error)
  } finally {
    await claim.end()
    await ports.events.flush(order.chatId)
  }
}

async function begin(ports: LoopPorts, order: RunOrder, claim: HeldClaim, report: RunReport): Promise<RunContext> {
  const rows = await readRows(ports.rows, order.chatId)
  const { look } = rows
  report.taken(look)
  await closeOrphanedUsages(ports, look)
  const configuration = await ports.configure(look.chat, order)
  const context = new RunContext(ports, order, claim, configuration, rows, report)
  if (order.by !== 'caller' && look.chat.attempts > configuration.agent.attempts) throw exhausted(look.chat)
  context.publish({ type: 'run.started', turn: look.chat.turn })
  return context
}

/** Both count: an agent may allow fewer attempts than a chat is allowed to cost processes. */
function exhausted(chat: ChatRow): AttemptsExhaustedError | QuarantinedError {
  if (chat.deaths > 0) return quarantined(chat, chat.deaths)
  return new AttemptsExhaustedError(
    `Turn ${chat.turn} of chat ${chat.id} was begun ${chat.attempts - 1} times and committed no message. ` +
      'Find out what fails it, then run complete() or enqueue it again.',
    { chatId: chat.id },
  )
}

async function release(run: RunContext, ending: Ending, turnEnded: boolean): Promise<void> {
  const released = await run.ports.rows.release(run.claim, { seen: run.chat.wantedSeq, ...ending, turnEnded })
  if (!released) throw claimLost(run.chat.id)
  if (ending.parked) run.publish({ type: 'run.waiting', toolCalls: openCalls(run.transcript).map(eventToolCall) })
  if (ending.parked || ending.wish.kind !== 'none') return
  const answer = run.transcript.findLast((message) => message.role === 'assistant' && !isSummary(message))
  run.publish({ type: 'run.finished', messageId: answer?.id ?? null })
}

/** Ends a run that can't go on. Returns only when that is no failure of the turn. */
async function fail(
  ports: LoopPorts,
  order: RunOrder,
  claim: HeldClaim,
  { context, report }: { readonly context: RunContext | null; readonly report: RunReport },
  error: unknown,
): Promise<Driven | 'lost'> {
  const turn = context === null ? {} : { turn: context.chat.turn }
  const lost = (): 'lost' => {
    report.ended('claim-lost', turn)
    return 'lost'
  }
  if (error instanceof ClaimLostError) return lost()
  // The one gave the chat back itself, the other has none.
  if (error instanceof CancelledError) {
    report.ended('cancelled', turn)
    if ((context?.look.queued.total ?? 0) > 0) await ports.bell.ring(order.chatId, 'complete')
    throw error
  }
  if (error instanceof ChatNotFoundError) {
    report.ended('chat-gone', turn)
    await ports.events.forget(order.chatId)
    throw error
  }
  const look = context?.look ?? (await ports.rows.look(order.chatId))
  const ending = endingOf(error, {
    chat: look.chat,
    byHand: order.by === 'caller' && order.verb !== 'complete',
    committed: context?.committed ?? false,
    maxAttempts: context?.configuration.agent.attempts ?? attemptsOf(ports, look.chat.agent),
    now: ports.clock.now(),
    random: ports.clock.random(),
  })
  const held = { ports, chat: look.chat, claim }
  if (!(await releaseFailed(held, ending))) return lost()
  const retry = 'delayMs' in ending.wish ? { retryInMs: ending.wish.delayMs } : {}
  report.ended(failedOutcome(error, ending), { turn: look.chat.turn, error, ...retry })
  if (context !== null && (ending.failure !== null || ending.wish.kind === 'later')) {
    const retryInMs = ending.wish.kind === 'later' ? ending.wish.delayMs : null
    const failure = ending.failure ?? failureOf(error, look.chat.turn, ports.clock.now())
    context.publish({ type: 'run.failed', failure, retryInMs })
  }
  if (error instanceof ShutdownError && ending.wish.kind === 'now') {
    return {
      produced: null,
      latest: latestMessage(context?.transcript ?? []),
      handedTo: ending.wish.queue,
      parked: false,
    }
  }
  throw error
}

/** Tells of the failure and gives the chat back. False = another process holds it by now. */
async function releaseFailed(run: Pick<RunContext, 'ports' | 'chat' | 'claim'>, ending: Ending): Promise<boolean> {
  try {
    const turnEnded = await tellFailed(run, ending.failure)
    const died = isFailing(run.claim)
    return await run.ports.rows.release(run.claim, { seen: run.chat.wantedSeq, ...ending, turnEnded, died })
  } catch (error) {
    if (error instanceof ClaimLostError) return false
    throw error
  }
}

function outcomeOf({ verb }: RunOrder, { ending, produced }: Moved): RunOutcome {
  if (ending.parked) return 'parked'
  if (ending.wish.kind === 'now') return 'handed-over'
  if (verb !== 'complete') return 'moved'
  return produced === null ? 'idle' : 'answered'
}

function failedOutcome(error: unknown, { wish }: Ending): RunOutcome {
  if (wish.kind === 'later') return 'retry'
  if (wish.kind === 'put-off') return 'put-off'
  return error instanceof ShutdownError ? 'handed-over' : 'failed'
}
