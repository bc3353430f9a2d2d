import type { ChatRow } from '../../models/rows.ts'
import { errorFacts } from '../observability/error-facts.ts'
import type { Observe } from '../observability/observation.ts'
import type { Agent } from '../tools/agent.ts'
import { type AgentDefinition, defineAgent as define } from '../tools/define-agent.ts'
import type { ToolParameters } from '../tools/parameters.ts'
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
export const defineAgent: <Inputs extends ToolParameters = Record<never, never>>(
  definition: AgentDefinition<Chat, Inputs>,
) => Agent = define

/** Calls the hook of a chat's agent; what goes wrong in it is observed and changes nothing. */
export async function tellTurnEnd(
  agent: Agent | undefined,
  row: ChatRow,
  outcome: TurnOutcome,
  { chatOf, observe }: { readonly chatOf: (row: ChatRow) => Chat; readonly observe: Observe },
): Promise<void> {
  // Only `defineAgent` above makes agents, so the hook does take a chat.
  const hook = agent?.onTurnEnd as OnTurnEnd<Chat> | null | undefined
  if (!hook) return
  const trouble = { type: 'hook.trouble', hook: 'onTurnEnd', chatId: row.id, agent: row.agent } as const
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      observe({ ...trouble, error: null })
      resolve()
    }, limitMs)
  })
  const told = (async () => hook(chatOf(row), outcome))().then(
    () => {},
    (error: unknown) => observe({ ...trouble, error: errorFacts(error) }),
  )
  await Promise.race([told, late]).finally(() => clearTimeout(timer))
}
