import type { ToolCallRow } from '../../models/rows.ts'
import { closingResults, noteClosed } from './close-calls.ts'
import type { RunContext } from './run-context.ts'
import { tellCancelled } from './turn-end.ts'

/** Ends a cancelled turn and gives the chat back: what was shown is kept, what was open is closed. */
export async function settleCancelled(run: RunContext, open: readonly ToolCallRow[]): Promise<void> {
  const shown = run.shown?.message ?? null
  const closed = closingResults(run, open, 'the turn was cancelled')
  await tellCancelled(run)
  await run.ports.rows.settleCancelled(run.claim, { shown, usageIds: run.shown?.usageIds ?? [], closed })
  if (shown !== null) {
    run.append(shown)
    run.publish({
      type: 'message.finished',
      messageId: shown.id,
      text: shown.content,
      finishReason: shown.finishReason,
    })
  }
  noteClosed(run, open, closed)
  run.publish({ type: 'run.cancelled' })
}
