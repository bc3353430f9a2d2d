import type { Transaction } from 'sequelize'
import type { Untaken } from '../models/claims.ts'
import { putOffCompaction, wantCompaction } from '../models/compaction.ts'
import type { PendingSettings } from '../models/settings.ts'
import { isLeftForDeaths } from '../src/loop/deaths.ts'
import { runCompaction } from '../src/loop/run-compaction.ts'
import { type Attempt, type Attempting, ChatJob, came, type JobOutcome } from './job.ts'

/** How long a worker that lacks the chat's agent leaves it to others, in ms. */
const putOffMs = 30_000

/**
 * Makes a summary of a chat, as `chat.compact()` does, by the chat's own or its agent's `compaction` settings. The wish is a
 * row of its own: it neither starts the turn nor counts as a try of it.
 */
export class CompactJob extends ChatJob {
  readonly queue = 'compact'

  protected override want(
    chatId: string,
    options: { readonly delayMs: number; readonly pending: PendingSettings },
    transaction: Transaction,
  ): Promise<void> {
    return wantCompaction(this.dependencies.db, chatId, options, transaction)
  }

  /**
   * Does the work of one job: makes the summary if one is wanted and nobody runs the chat. Nothing to summarise is no error.
   * @throws whatever kept it from being made; what may pass is tried again after a delay. {ArgumentError} for what is no id.
   */
  override async perform(chatId: string): Promise<JobOutcome> {
    return super.perform(chatId, () => false)
  }

  protected override async attempt({ chatId, alone }: Attempting): Promise<Attempt> {
    const result = await runCompaction(this.dependencies.ports, { chatId, by: 'compact', options: {}, alone })
    switch (result.kind) {
      case 'ended':
        return came('done')
      case 'handed-over':
        return came('handed over')
      case 'lost':
        return came('claim lost')
      case 'refused':
        return result
      default:
        return result satisfies never
    }
  }

  protected override isLeftForDeaths(untaken: Untaken): boolean {
    if (untaken.claimed || !untaken.compactDue) return false
    return isLeftForDeaths(this.dependencies.ports, untaken, { by: this.queue })
  }

  /** The wish stays with its row; whoever runs the chat now is done some time, and the sweeper rings then. */
  protected override async leave(chatId: string, untaken: Untaken): Promise<JobOutcome> {
    const { db, ports } = this.dependencies
    if (untaken.claimed) return 'claimed elsewhere'
    if (!untaken.compactDue) return 'not wanted'
    if (untaken.agent === null || ports.agentNamed(untaken.agent) !== null) return 'claimed elsewhere'
    await putOffCompaction(db, chatId, putOffMs * (0.75 + ports.clock.random() / 2))
    return 'put off'
  }
}
