import type { ToolCallRow } from '../../models/rows.ts'
import { toValue } from '../../models/tool-call.ts'
import type { ToolProgress } from '../tools/tool.ts'
import type { RunContext } from './run-context.ts'

/**
 * What one execution of a call reports of how far it is. Viewers are told at once; hooks get one report after the other, and a
 * tool, which does not wait for them, is ahead of them meanwhile.
 */
export class ProgressReports {
  readonly #run: RunContext
  readonly #call: ToolCallRow
  #told: Promise<void> = Promise.resolve()
  #failure: { readonly reason: unknown } | null = null

  constructor(run: RunContext, call: ToolCallRow) {
    this.#run = run
    this.#call = call
  }

  add(progress: ToolProgress): void {
    const { message = null, value = null, total = null } = progress
    this.#run.publish({ type: 'tool.progress', toolCallId: this.#call.toolCallId, message, value, total })
    if (!this.#run.hooks.has('afterToolProgress')) return
    this.#told = this.#told.then(() => this.#tell(progress))
  }

  /** Returns once the hooks were told of everything. @throws what the first of them threw; the reports after it are dropped. */
  async told(): Promise<void> {
    await this.#told
    if (this.#failure !== null) throw this.#failure.reason
  }

  /** Keeps what is thrown: nobody may be there to wait, as after a lost claim. */
  async #tell(progress: ToolProgress): Promise<void> {
    if (this.#failure !== null) return
    try {
      await tellProgress(this.#run, this.#call, progress)
    } catch (reason) {
      this.#failure = { reason }
    }
  }
}

/** Calls the hooks with one report. */
export async function tellProgress(run: RunContext, call: ToolCallRow, progress: ToolProgress): Promise<void> {
  if (!run.hooks.has('afterToolProgress')) return
  const { value, total } = progress
  const fraction = value === undefined || total === undefined || total === 0 ? null : value / total
  await run.hooks.call('afterToolProgress', toValue(call), { ...progress, fraction })
}
