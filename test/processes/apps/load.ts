import { setTimeout as wait } from 'node:timers/promises'
import * as z from 'zod'
import { defineAgent, defineTool } from '../../../src/index.ts'

// The agent of many chats at once. Its tool takes a while and names the call that it ran for.

const work = defineTool({
  name: 'work',
  description: 'Works.',
  parameters: z.object({ round: z.number() }),
  async execute(_args, context) {
    await wait(150, undefined, { signal: context.signal })
    return { key: context.idempotencyKey }
  },
})

/** Its workers die by the dozen, so a turn may be begun often before it is given up. */
export const agents = [
  defineAgent({ name: 'load', tools: [work], attempts: 20 }),
  defineAgent({ name: 'queued load', tools: [work], attempts: 20, toolExecution: 'queue' }),
]
