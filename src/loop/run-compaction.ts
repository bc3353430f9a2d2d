import { claimLost, type Untaken } from '../../models/claims.ts'
import type { CompactWishAfter } from '../../models/compaction.ts'
import type { TranscriptMessage } from '../../models/rows.ts'
import {
  AttemptsExhaustedError,
  CancelledError,
  ChatNotFoundError,
  ClaimLostError,
  NothingToCompactError,
  PendingToolCallsError,
  ShutdownError,
} from '../errors.ts'
import type { Refusal, RunOutcome } from '../observability/observation.ts'
import { compact } from './compact.ts'
import { deathsBelow, isFailing, isLeftForDeaths } from './deaths.ts'
import { attemptsOf, codeOf, isRetryable, missingAgent, retryDelayAfter } from './ending.ts'
import { cancelled } from './move-on.ts'
import { pendingToolCalls } from './pending-tool-calls.ts'
import type { HeldClaim } from './ports.ts'
import { readRows } from './read-rows.ts'
import { type LoopPorts, RunContext, type RunOrder } from './run-context.ts'
import { RunReport } from './run-report.ts'
import { settleCancelled } from './settle-cancelled.ts'
import { abandonedCalls, hasPendingWork, openCalls } from './transcript.ts'
import { closeOrphanedUsages } from './usage-entries.ts'

export interface CompactionOrder {
  readonly chatId: string
  /** A direct call, or a job. */
  readonly by: 'caller' | 'compact'
  /** What is left out is as the chat's or its agent's compaction settings say. */
  readonly options: {
    readonly instructions?: string | undefined
    readonly model?: string | undefined
    readonly keep?: number | undefined
  }
  /** Whether this process runs nothing else, or no other chat at least that has cost processes. */
  readonly alone?: boolean | undefined
  /** What the caller's chat object brings along. */
  readonly caller?: RunOrder['caller']
}

export type CompactionResult =
  /** Nobody summarised: another process holds the chat, no summary is wanted, or this process lacks its agent. */
  | { readonly kind: 'refused'; readonly untaken: Untaken }
  | { readonly kind: 'lost' }
  /** The process is ending: another one makes the summary. */
  | { readonly kind: 'handed-over' }
  /** `message` is null where a job found nothing to summarise. */
  | { readonly kind: 'ended'; readonly message: TranscriptMessage | null }

/**
 * Claims a chat for a summary alone, makes it, and gives the chat back with its turn and its wish as they were; then rings
 * for what came meanwhile, since whoever came found the chat claimed.
 * @throws whatever kept the summary from being made.
 */
export async function runCompaction(ports: LoopPorts, order: CompactionOrder): Promise<CompactionResult> {
  const taken = await ports.claims.take(
    order.chatId,
    order.by === 'caller' ? 'compact' : 'compact-job',
    deathsBelow(order),
  )
  if (taken.kind === 'refused') {
    ports.observe({
      type: 'run.refused',
      chatId: order.chatId,
      by: order.by,
      why: refusal(ports, taken.untaken, order),
    })
    return taken
  }
  const { chatId, by } = order
  try {
    return await ports.within({ kind: 'run', chatId, verb: 'compact', by }, (report) =>
      underClaim(ports, order, taken.claim, new RunReport(ports, { verb: 'compact', ...order }, report)),
    )
  } finally {
    await taken.claim.end()
    await ports.events.flush(order.chatId)
    await ringAgain(ports, order.chatId)
  }
}

function refusal(ports: LoopPorts, { claimed, compactDue, ...untaken }: Untaken, order: CompactionOrder): Refusal {
  if (claimed) return 'claimed'
  if (order.by !== 'caller' && !compactDue) return 'not-wanted'
  return isLeftForDeaths(ports, untaken, order) ? 'deadly' : 'agent-missing'
}

async function underClaim(
  ports: LoopPorts,
  order: CompactionOrder,
  claim: HeldClaim,
  report: RunReport,
): Promise<CompactionResult> {
  let run: RunContext | null = null
  try {
    run = await begin(ports, order, claim, report)
    const message = await summarise(run, order)
    const released = await ports.rows.releaseCompaction(claim, { seen: run.chat.compactSeq, wish: { kind: 'none' } })
    const lost = !released && message === null
    report.ended(lost ? 'claim-lost' : message === null ? 'idle' : 'compacted')
    // The summary is committed; only giving the chat back came too late.
    return lost ? { kind: 'lost' } : { kind: 'ended', message }
  } catch (error) {
    return await fail(ports, order, claim, { run, report }, error)
  }
}

async function begin(
  ports: LoopPorts,
  order: CompactionOrder,
  claim: HeldClaim,
  report: RunReport,
): Promise<RunContext> {
  const rows = await readRows(ports.rows, order.chatId)
  report.taken(rows.look)
  const { chat } = rows.look
  await closeOrphanedUsages(ports, rows.look)
  const runOrder = {
    chatId: order.chatId,
    verb: 'compact',
    by: order.by,
    caller: order.caller,
  } as const
  const configuration = await ports.configure(chat, runOrder)
  if (order.by !== 'caller' && chat.compactAttempts > configuration.agent.attempts) {
    throw new AttemptsExhaustedError(
      `A summary of chat ${order.chatId} was begun ${chat.compactAttempts - 1} times and not made. Find out what kills its ` +
        'workers or fails it, then enqueue it again.',
      { chatId: order.chatId },
    )
  }
  return new RunContext(ports, runOrder, claim, configuration, rows, report)
}

/** Returns null where a job has nothing to summarise. */
async function summarise(run: RunContext, order: CompactionOrder): Promise<TranscriptMessage | null> {
  if (run.chat.cancelTurn === run.chat.turn) return settle(run)
  const open = openCalls(run.transcript)
  if (open.length > 0) throw pendingToolCalls(run.chat.id, open)
  const { options } = order
  const settings = run.configuration.compaction
  const compacted = await compact(run, {
    instructions: options.instructions ?? settings?.instructions,
    model: options.model ?? settings?.model,
    keep: options.keep ?? settings?.keep ?? 0,
  })
  switch (compacted.kind) {
    case 'stored':
      return compacted.message
    case 'stopped':
      return settle(run)
    case 'nothing':
      if (order.by !== 'caller') return null
      throw new NothingToCompactError(
        `Chat ${run.chat.id} has no messages that a summary could stand for: all there are belong to the running turn, to ` +
          'the last ones that are kept, or to a summary already.',
        { chatId: run.chat.id },
      )
    default:
      return compacted satisfies never
  }
}

/** The cancel is of an unanswered turn as well: what it left open is closed. One that was answered stays answered. */
async function settle(run: RunContext): Promise<never> {
  await run.refresh()
  if (hasPendingWork(run.transcript)) {
    await settleCancelled(run, [...abandonedCalls(run.transcript), ...openCalls(run.transcript)])
  } else if (!(await run.ports.rows.releaseCancelledCompaction(run.claim))) {
    throw claimLost(run.chat.id)
  }
  throw cancelled(run.chat.id)
}

async function fail(
  ports: LoopPorts,
  order: CompactionOrder,
  claim: HeldClaim,
  { run, report }: { readonly run: RunContext | null; readonly report: RunReport },
  error: unknown,
): Promise<CompactionResult> {
  const lost = (): CompactionResult => {
    report.ended('claim-lost')
    return { kind: 'lost' }
  }
  if (error instanceof ClaimLostError) return lost()
  // The one gave the chat back itself, the other has none.
  if (error instanceof CancelledError || error instanceof ChatNotFoundError) {
    report.ended(error instanceof CancelledError ? 'cancelled' : 'chat-gone')
    throw error
  }
  const { chat } = run?.look ?? (await ports.rows.look(order.chatId))
  const most = run?.configuration.agent.attempts ?? attemptsOf(ports, chat.agent)
  const wish = wishAfter(order, error, { attempts: chat.compactAttempts, most })
  const died = isFailing(claim)
  const released = await ports.rows.releaseCompaction(claim, { seen: chat.compactSeq, wish, died })
  if (!released) return lost()
  const retry = wish.kind === 'later' ? { retryInMs: wish.delayMs } : {}
  report.ended(failedOutcome(error, wish), { error, ...retry })
  if (error instanceof ShutdownError && order.by !== 'caller') return { kind: 'handed-over' }
  throw error
}

function failedOutcome(error: unknown, wish: CompactWishAfter): RunOutcome {
  if (error instanceof ShutdownError) return 'handed-over'
  return wish.kind === 'later' ? 'retry' : 'failed'
}

function wishAfter(
  order: CompactionOrder,
  error: unknown,
  tried: { readonly attempts: number; readonly most: number },
): CompactWishAfter {
  // A caller's failure says nothing about a wish of somebody else.
  if (order.by === 'caller' || error instanceof ShutdownError) return { kind: 'unchanged' }
  const mayPass = isRetryable(error) || codeOf(error) === missingAgent || error instanceof PendingToolCallsError
  if (!mayPass || tried.attempts >= tried.most) return { kind: 'none' }
  return { kind: 'later', delayMs: retryDelayAfter(tried.attempts) }
}

/** Best effort, as every ring: the sweeper finds what this look misses. */
async function ringAgain(ports: LoopPorts, chatId: string): Promise<void> {
  const look = await ports.rows.look(chatId).catch(() => null)
  if (look === null || look.claimed || !look.due || look.chat.failure !== null) return
  await ports.bell.ring(chatId, look.chat.wantedQueue ?? 'complete')
}
