import { agentTool, defineAgent } from '../../../src/index.ts'
import { dieAtStatement } from '../support/die.ts'

// A worker process whose agent asks another one.

const researcher = defineAgent({ name: 'researcher', instructions: 'researcher', retries: 0 })
const tools = [agentTool(researcher, { description: 'Looks things up.' })]

export const agents = [defineAgent({ name: 'editor', instructions: 'editor', retries: 0, tools })]
export const observe = { onStatement: dieAtStatement() }
