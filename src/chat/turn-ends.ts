import type { Logger } from '../../config/logger.ts'
import type { ChatRow } from '../../models/rows.ts'
import type { Agent } from '../tools/agent.ts'
import { type AgentDefinition, defineAgent as define } from '../tools/define-agent.ts'
import type { OnTurnEnd, TurnOutcome } from '../tools/turn-end.ts'
import type { Chat } from './chat.ts'

/** Longest that a run waits for a hook, in ms. */
const limitMs = 60_000

/**
 * Makes an agent: a named configuration that chats refer to. The result is frozen; every process that runs its chats
 * needs it.
 * @throws {ArgumentError} that names the agent and everything that is wrong with its definition.
 * @throws {ConfigurationError} if two of its tools have one name.
 */
export const defineAgent: (definition: AgentDefinition<Chat>) => Agent = define

/** Calls the hook of a chat's agent; what goes wrong in it is logged and changes nothing. */
export async function tellTurnEnd(
  agent: Agent | undefined,
  row: ChatRow,
  outcome: TurnOutcome,
  { chatOf, logger }: { readonly chatOf: (row: ChatRow) => Chat; readonly logger: Logger },
): Promise<void> {
  // Only `defineAgent` above makes agents, so the hook does take a chat.
  const hook = agent?.onTurnEnd as OnTurnEnd<Chat> | null | undefined
  if (!hook) return
  const about = { chatId: row.id, agent: row.agent, turn: outcome.turn, outcome: outcome.kind }
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      logger.warn(about, `onTurnEnd took over ${limitMs} ms; the run goes on without it`)
      resolve()
    }, limitMs)
  })
  const told = (async () => hook(chatOf(row), outcome))().then(
    () => {},
    (error: unknown) => logger.warn({ ...about, err: error }, 'onTurnEnd threw; the turn has ended all the same'),
  )
  await Promise.race([told, late]).finally(() => clearTimeout(timer))
}
