import { isRefusedStatement } from '../../config/refused-statement.ts'
import type { ChatRow } from '../../models/rows.ts'
import type { ChatLook } from '../../models/transcript.ts'
import type { UsageLink } from '../../models/turns.ts'
import type { UsageClosing } from '../../models/usages.ts'
import { errorFacts } from '../observability/error-facts.ts'
import type { UsageUnwritten } from '../observability/observation.ts'
import type { ModelAttempt } from './ask-model.ts'
import { factsOf, type LoopPorts, type RunContext } from './run-context.ts'

// The ledger must not cost an answer: a statement about an entry that the database refuses is observed, and the run goes on
// without it. Whatever else goes wrong, such as a database that is away, ends the run: it would meet it at the next write. (S83)

/**
 * Opens the usage entry of an attempt, before anything is sent.
 * @throws {ChatNotFoundError} when the chat was deleted meanwhile.
 */
export async function openUsage(run: RunContext, attempt: ModelAttempt): Promise<void> {
  const { chat, ports } = run
  const entry = {
    id: attempt.usageId,
    chatId: chat.id,
    owner: chat.owner,
    // Viewers see nothing of a summary, so nothing of it can be left on their screens.
    answerId: attempt.operation === 'chat' ? attempt.messageId : null,
    operation: attempt.operation,
    provider: attempt.target.client.provider,
    model: attempt.target.model,
    claimToken: chat.claimToken,
  }
  if (await written(run, 'open', attempt.usageId, () => ports.rows.openUsage(entry))) return
  // An entry is refused too when its chat is gone, and then nobody is to be asked for an answer.
  await ports.rows.look(chat.id)
}

/** Closes the usage entry of an attempt, however it ended. */
export async function closeUsage(run: RunContext, { usageId }: ModelAttempt, closing: UsageClosing): Promise<void> {
  await written(run, 'close', usageId, () => run.ports.rows.closeUsage(usageId, closing))
}

/** Closes what dead runs of the chat left open, where they did. */
export async function closeOrphanedUsages(ports: LoopPorts, { chat, orphanedUsages }: ChatLook): Promise<void> {
  if (orphanedUsages === 0) return
  await written({ ports, chat }, 'orphan', null, () => ports.rows.closeOrphanedUsages(chat.id, chat.claimToken))
}

/** The attempts that led to a message, for the transaction that commits it. */
export function usageLink(run: RunContext, usageIds: readonly string[]): UsageLink {
  return { usageIds, onUnlinked: (error) => unwritten(run, 'link', usageIds.at(-1) ?? null, error) }
}

type UsageStep = UsageUnwritten['step']
type Holder = { readonly ports: LoopPorts; readonly chat: ChatRow }

/** False = the database refused it. */
async function written(
  run: Holder,
  step: UsageStep,
  usageId: string | null,
  write: () => Promise<void>,
): Promise<boolean> {
  try {
    await write()
    return true
  } catch (error) {
    if (!isRefusedStatement(error)) throw error
    unwritten(run, step, usageId, error)
    return false
  }
}

function unwritten({ ports, chat }: Holder, step: UsageStep, usageId: string | null, error: unknown): void {
  const facts = errorFacts(error, ports.content)
  ports.observe({ type: 'usage.unwritten', ...factsOf({ chat }), usageId, step, error: facts })
}
