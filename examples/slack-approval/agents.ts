import { type Agent, defineAgent, defineTool } from 'threadmill'
import * as z from 'zod'

const deploy = defineTool({
  name: 'deploy',
  description: 'Deploys a service to production.',
  parameters: z.object({ service: z.string() }),
  requiresApproval: true,
  execute: ({ service }) => `${service} is deployed.`,
})

/** @param tell posts a text to the channel. */
export function makeOps(tell: (text: string) => Promise<void>): Agent {
  return defineAgent({
    name: 'ops',
    instructions: 'You deploy services when you are asked to.',
    tools: [deploy],
    // Told at least once, by whichever worker ran the chat, so an answer may be posted twice but is never lost.
    onTurnEnd: async (_chat, outcome) => {
      if (outcome.kind === 'answered') await tell(outcome.message.content ?? '')
      if (outcome.kind === 'failed') await tell(`I gave up: ${outcome.failure.message}`)
    },
  })
}
