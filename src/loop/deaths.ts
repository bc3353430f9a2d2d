import type { Untaken } from '../../models/claims.ts'
import { aloneFrom, setAsideAt } from '../../models/deaths.ts'
import type { ChatRow } from '../../models/rows.ts'
import { QuarantinedError, ShutdownError } from '../errors.ts'
import type { HeldClaim } from './ports.ts'
import type { CompactionOrder } from './run-compaction.ts'
import type { LoopPorts, RunOrder } from './run-context.ts'

type Order = Pick<RunOrder | CompactionOrder, 'by' | 'alone'>

/** Who takes a chat for an order leaves it alone once it has cost so many processes; null = never: a caller knows what it does. */
export function deathsBelow({ by, alone }: Order): number | null {
  if (by === 'caller') return null
  return alone ? setAsideAt : aloneFrom
}

/** Whether a chat that is due was left alone by an order for what it has cost, and not for want of its agent. */
export function isLeftForDeaths(
  ports: Pick<LoopPorts, 'agentNamed'>,
  { agent, deaths }: Pick<Untaken, 'agent' | 'deaths'>,
  order: Order,
): boolean {
  const most = deathsBelow(order)
  if (most === null || deaths < most) return false
  return agent === null || ports.agentNamed(agent) !== null
}

/** Whether a run was aborted by a process that fails, and could not be finished: it may be what fails it. */
export function isFailing({ signal }: Pick<HeldClaim, 'signal'>): boolean {
  return signal.reason instanceof ShutdownError && signal.reason.failing
}

/** What a chat is given up with that has cost so many processes. */
export function quarantined(
  { id, turn, lastDeath }: Pick<ChatRow, 'id' | 'turn' | 'lastDeath'>,
  deaths: number,
): QuarantinedError {
  const last = lastDeath === null ? '' : `; the last one, which ran nothing else, ended with ${lastDeath}`
  return new QuarantinedError(
    `${deaths} ${deaths === 1 ? 'process' : 'processes'} died over turn ${turn} of chat ${id} without a committed move${last}. ` +
      `Find what kills them (memory, a tool that exits or crashes), then: threadmill retry ${id}`,
    { chatId: id },
  )
}
