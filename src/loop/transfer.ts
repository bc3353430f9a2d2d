import type { ChatRow, Transfer } from '../../models/rows.ts'
import type { NewTransfer } from '../../models/transferring.ts'
import type { Agent } from '../tools/agent.ts'
import { storedInstructions } from '../tools/instructions.ts'
import { isRetryable } from './ending.ts'
import type { RunContext } from './run-context.ts'

/** Makes the chat another agent's, and goes on as that one. False = this process lacks it: another goes on. */
export async function transfer(run: RunContext, to: Transfer): Promise<boolean> {
  const { chat, ports, configuration } = run
  const agents = { from: configuration.agent, to: ports.agentNamed(to.agent) }
  if (!(await ports.rows.transfer(run.claim, await newTransfer(chat, to, agents)))) {
    await run.refresh()
    return true
  }
  run.publish({ type: 'transferred', agent: to.agent })
  await run.reload()
  if (agents.to === null) return false
  await run.reconfigure()
  return true
}

/**
 * What a transfer writes. Instructions that an agent stored with its chats are its own, and go with it; those of the chat itself stay.
 * An agent that this process does not know stored none, as far as it can tell.
 */
export async function newTransfer(
  chat: Pick<ChatRow, 'id' | 'owner'>,
  { agent, inputs }: Transfer,
  { from, to }: { readonly from: Agent | null; readonly to: Agent | null },
): Promise<NewTransfer> {
  const instructions = to === null ? null : await storedInstructions(to, { ...chat, inputs }, isRetryable)
  return { agent, inputs, leavesInstructions: leavesInstructions(from), instructions }
}

/** Whether the system messages of this agent's chats are its own. */
export function leavesInstructions(from: Agent | null): boolean {
  return from?.instructionsAt === 'create'
}
