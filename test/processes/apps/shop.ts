import { appendFileSync } from 'node:fs'
import * as z from 'zod'
import { defineAgent, defineTool, type OnInterrupted, type ToolContext } from '../../../src/index.ts'

// Agents whose worker processes die. What their tools do outside is a line of a file, as of a payment server's ledger.

interface More {
  readonly onInterrupted?: OnInterrupted
  readonly requiresApproval?: boolean
  /** What a payment server would know the refund by. */
  readonly keyOf?: (context: ToolContext) => string
}

const refund = (name: string, { keyOf = ({ idempotencyKey }) => idempotencyKey, ...more }: More = {}) =>
  defineTool({
    name,
    description: 'Refunds an order.',
    parameters: z.object({ order: z.string() }),
    execute({ order }, context) {
      appendFileSync(process.env.SHOP_LEDGER ?? '', `${context.chat.id} ${keyOf(context)} ${process.pid}\n`)
      return `order ${order} is refunded`
    },
    ...more,
  })

const leave = defineTool({
  name: 'leave',
  description: 'Ends its process.',
  parameters: z.object({ order: z.string() }),
  execute: () => process.exit(1),
})

export const agents = [
  defineAgent({ name: 'shop', tools: [refund('refund')] }),
  defineAgent({ name: 'careful shop', tools: [refund('refund_once', { onInterrupted: 'fail' })] }),
  defineAgent({ name: 'asking shop', tools: [refund('refund_asked', { requiresApproval: true })] }),
  // The fault: its key differs with the process, so that a payment server books twice.
  defineAgent({ name: 'careless shop', tools: [refund('refund_anew', { keyOf: () => String(process.pid) })] }),
  defineAgent({ name: 'leaving shop', tools: [leave] }),
  defineAgent({ name: 'shop elsewhere' }),
]

// biome-ignore lint/style/noDefaultExport: what `threadmill worker --app` takes.
export default {
  agents,
  contextFor: ({ agent }: ToolContext['chat']) =>
    agent === 'shop elsewhere' ? { baseURL: process.env.SHOP_ELSEWHERE ?? '' } : null,
}
