import { ProviderError } from '../errors.ts'
import { compact } from './compact.ts'
import type { RunContext } from './run-context.ts'

/**
 * The move that makes room before the next model call. A summary that could not be made fails no turn whose request still
 * fits: it is observed, its cost is in the ledger, and the run does without.
 * @returns `pause` when a summary was stored and the run is to end with it.
 * @throws what is no model's fault: the claim, a shutdown, a bug.
 */
export async function compactByItself(run: RunContext, keep: number): Promise<'go-on' | 'pause'> {
  const settings = run.configuration.compaction
  if (!(await run.ports.rows.countCompaction(run.claim))) {
    await run.refresh()
    return 'go-on'
  }
  run.chat.compactions++
  run.fresh = false
  try {
    const order = { instructions: settings?.instructions, model: settings?.model, keep }
    const compacted = await compact(run, order)
    return compacted.kind === 'stored' && settings?.pauseAfter === true ? 'pause' : 'go-on'
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error
    run.compactionFailure = error
    return 'go-on'
  } finally {
    run.fresh = false
  }
}
