import { setAsideAt } from '../../models/deaths.ts'
import type { QuarantinedError } from '../errors.ts'
import { quarantined } from './deaths.ts'
import { failureOf } from './ending.ts'
import { factsOf, type LoopPorts } from './run-context.ts'
import { tellParent } from './sub-chats.ts'

/**
 * Gives a chat up that has cost too many processes, and tells everybody: without taking it, and without reading more than its row,
 * since that may be what kills. Null = it was taken meanwhile, or is no longer wanted: nothing was changed. (E123)
 */
export async function setChatAside(ports: LoopPorts, chatId: string, deaths: number): Promise<QuarantinedError | null> {
  const { chat } = await ports.rows.look(chatId)
  const error = quarantined(chat, deaths)
  const failure = failureOf(error, chat.turn, ports.clock.now())
  // Before, as a run tells it: a process that ends in between is followed by one that tells it again.
  await tellParent({ ports, chat, claim: null }, { kind: 'failed', message: failure.message })
  if (!(await ports.rows.setAside({ chatId, failure, deaths: setAsideAt }))) return null
  await ports.rows.closeOrphanedUsages(chatId, chat.claimToken + 1)
  // From outside any run: the last take was that of a process that is gone.
  ports.events.publish(chatId, 0, { type: 'run.failed', failure, retryInMs: null })
  ports.observe({
    type: 'chat.quarantined',
    ...factsOf({ chat }),
    agent: chat.agent,
    deaths,
    lastDeath: chat.lastDeath,
  })
  ports.observe({ type: 'turn.ended', ...factsOf({ chat }), outcome: 'failed' })
  // After: what the application does there may be what kills, and would again and again.
  await ports.tellTurnEnd(chat, { kind: 'failed', turn: chat.turn, failure })
  return error
}
