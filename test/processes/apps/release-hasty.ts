import { defineAgent } from '../../../src/index.ts'
import { deskTool } from '../support/desk-tool.ts'

// A release that has dropped a tool for good, though calls of it may be open.

export const agents = [
  defineAgent({ name: 'shop', instructions: 'You are the shop of the new release.', tools: [deskTool('find')] }),
]
