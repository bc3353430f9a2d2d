import { support } from './agents.ts'

// biome-ignore lint/style/noDefaultExport: what `threadmill worker --app` takes
export default { agents: [support] }
