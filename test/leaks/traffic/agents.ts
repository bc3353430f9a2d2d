import * as z from 'zod'
import { agentTool, defineAgent, defineTool } from '../../../src/index.ts'

// The agents of the traffic, with a tool for each thing that a call can do.

const nothing = z.object({})

const lookUp = defineTool({
  name: 'look_up',
  description: 'Looks something up.',
  parameters: z.object({ of: z.string() }),
  async execute({ of }, { progress }) {
    progress({ message: `looking for ${of}` })
    return `${of}: 4`
  },
})

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  parameters: nothing,
  requiresApproval: true,
  execute: (_args, { idempotencyKey }) => ({ paid: idempotencyKey }),
})

const where = defineTool({
  name: 'where',
  description: 'Asks its user for an address.',
  parameters: nothing,
  async execute(_args, { ask }) {
    return ask({ message: 'Where to?', fields: [{ name: 'street' }] })
  },
})

const draw = defineTool({
  name: 'draw',
  description: 'Draws.',
  parameters: nothing,
  async execute(_args, { attach, toolCall }) {
    await attach({ data: Buffer.from(`a drawing for ${toolCall.id}`), filename: 'drawing.txt' })
    return 'drawn'
  },
})

const fail = defineTool({
  name: 'fail',
  description: 'Fails.',
  parameters: nothing,
  onError: 'report',
  execute() {
    throw new Error('the shop is closed')
  },
})

const helper = defineAgent({ name: 'helper', instructions: 'You help.', tools: [lookUp] })

export const agents = [
  helper,
  defineAgent({
    name: 'desk',
    instructions: 'You answer the customers of a shop.',
    tools: [lookUp, pay, where, draw, fail, agentTool(helper, { name: 'help', description: 'Asks the helper.' })],
    onTurnEnd: async () => {},
  }),
  defineAgent({ name: 'back office', tools: [lookUp], toolExecution: 'queue' }),
]
