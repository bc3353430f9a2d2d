import type { ToolCallRow, TranscriptMessage } from '../../models/rows.ts'
import { errorFacts } from '../observability/error-facts.ts'
import { closingResults, noteClosed } from './close-calls.ts'
import { cancelTasks } from './paused-calls.ts'
import type { RunContext } from './run-context.ts'
import { tellCancelled } from './turn-end.ts'
import { usageLink } from './usage-entries.ts'

/** Ends a cancelled turn and gives the chat back: what was shown is kept, what was open is closed. */
export async function settleCancelled(run: RunContext, open: readonly ToolCallRow[]): Promise<void> {
  const shown = run.shown?.message ?? null
  const closed = closingResults(run, open, 'the turn was cancelled')
  await cancelTasks(run, open)
  await tellCancelled(run)
  const link = usageLink(run, run.shown?.usageIds ?? [])
  await run.ports.rows.settleCancelled(run.claim, { shown, ...link, closed })
  const stored: TranscriptMessage[] = []
  if (shown !== null) {
    stored.push(run.append(shown))
    run.publish({
      type: 'message.finished',
      messageId: shown.id,
      text: shown.content,
      finishReason: shown.finishReason,
    })
  }
  stored.push(...noteClosed(run, open, closed))
  run.publish({ type: 'run.cancelled' })
  await tellStored(run, stored)
}

/** The chat is given back already, so what a hook throws can't end anything any more. */
async function tellStored(run: RunContext, stored: readonly TranscriptMessage[]): Promise<void> {
  const { id, agent } = run.chat
  for (const message of stored) {
    await run.hooks.call('afterMessage', message).catch((error: unknown) => {
      run.ports.observe({ type: 'hook.trouble', hook: 'afterMessage', chatId: id, agent, error: errorFacts(error) })
    })
  }
}
