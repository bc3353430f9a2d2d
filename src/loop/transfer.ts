import type { ChatRow, Transfer } from '../../models/rows.ts'
import { type Instruction, instructionOf } from '../../models/settings.ts'
import type { NewTransfer } from '../../models/transferring.ts'
import type { Agent } from '../tools/agent.ts'
import { storedInstructions } from '../tools/instructions.ts'
import { isRetryable } from './ending.ts'
import type { RunContext } from './run-context.ts'

/** Makes the chat another agent's, and goes on as that one. False = this process lacks it: another goes on. */
export async function transfer(run: RunContext, to: Transfer): Promise<boolean> {
  const { chat, ports, configuration, transcript } = run
  const agents = { from: configuration.agent, to: ports.agentNamed(to.agent) }
  const system = transcript.filter(({ role }) => role === 'system').map(instructionOf)
  await ports.rows.transfer(run.claim, await newTransfer(chat, to, agents, system))
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
  chat: Pick<ChatRow, 'id' | 'owner' | 'settings'>,
  { agent, inputs }: Transfer,
  { from, to }: { readonly from: Agent | null; readonly to: Agent | null },
  system: readonly Instruction[],
): Promise<NewTransfer> {
  const transferred = { agent, inputs, settings: chat.settings }
  const left = from?.instructionsAt === 'create' ? [] : system
  const stored = to === null ? null : await storedInstructions(to, { ...chat, inputs }, isRetryable)
  const instructions = left.length > 0 || stored === null ? left : [{ content: stored, cacheBoundary: null }]
  return instructions === system ? transferred : { ...transferred, instructions }
}
