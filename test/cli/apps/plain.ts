import { type Agent, defineAgent } from '../../../src/index.ts'

const support: Agent = defineAgent({ name: 'support' })

// biome-ignore lint/style/noDefaultExport: what `threadmill worker --app` takes.
export default { agents: [support] }
