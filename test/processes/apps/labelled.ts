import { DataTypes } from 'sequelize'
import * as z from 'zod'
import { type ConnectOptions, defineAgent, defineTool, type Threadmill } from '../../../src/index.ts'

// The agent of load.ts in a release that has a column of its own: its tool writes the column, and reads it back.

declare module '../../../models/extension.ts' {
  interface ChatExtension {
    stamp?: string | null
  }
}

export const extend: ConnectOptions['extend'] = { Chat: { attributes: { stamp: DataTypes.STRING(20) } } }

let mill: Threadmill | undefined
export const connected = (opened: Threadmill) => {
  mill = opened
}

const work = defineTool({
  name: 'work',
  description: 'Works, and stamps the chat.',
  parameters: z.object({ round: z.number() }),
  async execute(_args, { chat, idempotencyKey }) {
    const where = { id: chat.id }
    await mill?.models.Chat.update({ stamp: 'new' }, { where })
    const row = await mill?.models.Chat.findOne({ where: { ...where, stamp: 'new' } })
    return { key: idempotencyKey, stamped: row?.stamp }
  },
})

export const agents = [defineAgent({ name: 'load', tools: [work], attempts: 20 })]
