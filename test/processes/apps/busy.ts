import { setTimeout as wait } from 'node:timers/promises'
import * as z from 'zod'
import { defineAgent, defineTool } from '../../../src/index.ts'

// An agent whose tool holds the event loop of its worker up again and again, as large JSON or a busy machine does.

const work = defineTool({
  name: 'work',
  description: 'Works, and lets nobody else work meanwhile.',
  parameters: z.object({ round: z.number() }),
  async execute(_args, context) {
    const cell = new Int32Array(new SharedArrayBuffer(4))
    for (let time = 0; time < 8; time++) {
      Atomics.wait(cell, 0, 0, 100)
      await wait(500, undefined, { signal: context.signal })
    }
    return { key: context.idempotencyKey }
  },
})

export const agents = [defineAgent({ name: 'load', tools: [work], attempts: 20 })]
