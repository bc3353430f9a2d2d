import { defineAgent, defineTool } from 'threadmill'
import * as z from 'zod'

const refundOrder = defineTool({
  name: 'refund_order',
  description: 'Refunds an order.',
  parameters: z.object({ order: z.string() }),
  requiresApproval: true,
  // A real one hands context.idempotencyKey to the payment service: it may run twice if its process dies.
  execute: ({ order }) => `Order ${order} is refunded.`,
})

export const support = defineAgent({
  name: 'support',
  instructions: 'You answer the customers of a shop.',
  tools: [refundOrder],
})
