import { defineAgent } from '../../../src/index.ts'
import { deskTool } from '../support/desk-tool.ts'

// What a deploy brings: `look_up` is called `find` now, `refund` is gone; both stay, unoffered, for calls that are open.

export const agents = [
  defineAgent({
    name: 'shop',
    instructions: 'You are the shop of the new release.',
    tools: [deskTool('find'), deskTool('pay_back', { requiresApproval: true })],
  }),
  defineAgent({ name: 'advisor', tools: [deskTool('find')] }),
]
export const tools = [deskTool('look_up'), deskTool('refund', { requiresApproval: true })]
