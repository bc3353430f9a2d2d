import { defineAgent } from '../../../src/index.ts'
import { deskTool } from '../support/desk-tool.ts'

// What a deploy replaces: release-new.ts has the same agent with other instructions and tools, and one agent more.

export const agents = [
  defineAgent({
    name: 'shop',
    instructions: 'You are the shop of the old release.',
    tools: [deskTool('look_up'), deskTool('refund', { requiresApproval: true })],
  }),
]
