import { createHash } from 'node:crypto'
import * as z from 'zod'
import { defineAgent, defineTool } from '../../index.ts'
import { calculator } from './calculator.ts'
import { clock } from './clock.ts'
import { readFile } from './read-file.ts'

/** Stands for whatever moves money: a person decides about each call. */
const refundOrder = defineTool({
  name: 'refund_order',
  description: 'Refunds an order. A person has to approve it first.',
  parameters: z.object({ order: z.string().min(1).max(40).describe('the number of the order') }),
  requiresApproval: true,
  // The key is the same however often the call runs, so a second run makes no second receipt.
  execute: ({ order }, { idempotencyKey }) =>
    `order ${order} is refunded, receipt R-${createHash('sha256').update(idempotencyKey).digest('hex').slice(0, 8).toUpperCase()} (a demo: no money has moved)`,
})

/** The agent of the demo. Every process of it has this agent. */
export const demoAgent = defineAgent({
  name: 'threadmill-demo',
  instructions:
    'You are the agent of a demo. Answer in one or two sentences of plain text. Use your tools for times, arithmetic, ' +
    'files and refunds instead of guessing. The demo asks a person about refunds by itself: do not ask again in words.',
  tools: [clock, calculator, readFile, refundOrder],
  retries: 2,
  // A person is waiting for the answer: better to fail soon than to try for a quarter of an hour.
  attempts: 2,
})
