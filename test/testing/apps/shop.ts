import { appendFileSync } from 'node:fs'
import * as z from 'zod'
import { defineAgent, defineTool, type ToolContext } from '../../../src/index.ts'

// Agents whose worker processes die. What their tools do outside is a line of a file, as of a payment server's ledger.

const book = (context: ToolContext, key: string) =>
  appendFileSync(process.env.SHOP_LEDGER ?? '', `${context.chat.id} ${key}\n`)

const refund = (name: string, key: (context: ToolContext) => string, more: object = {}) =>
  defineTool({
    name,
    description: 'Refunds an order.',
    parameters: z.object({ order: z.string() }),
    execute({ order }, context) {
      book(context, key(context))
      return `order ${order} is refunded`
    },
    ...more,
  })

const byKey = ({ idempotencyKey }: ToolContext) => idempotencyKey
/** The fault: the key differs with the process, so that a payment server books twice. */
const byProcess = () => String(process.pid)

export const agents = [
  defineAgent({ name: 'shop', tools: [refund('refund', byKey)] }),
  defineAgent({ name: 'careful shop', tools: [refund('refund_once', byKey, { onInterrupted: 'fail' })] }),
  defineAgent({ name: 'asking shop', tools: [refund('refund_asked', byKey, { requiresApproval: true })] }),
  defineAgent({ name: 'careless shop', tools: [refund('refund_anew', byProcess)] }),
]

export default { agents }
