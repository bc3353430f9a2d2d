import { appendFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { Sequelize } from 'sequelize'
import * as z from 'zod'
import { defineAgent, defineTool } from '../../../src/index.ts'

// The application of a worker process that is killed between reading a queued message and storing it.

const directory = process.env.STEERING_DIRECTORY ?? ''

const work = defineTool({
  name: 'work',
  description: 'Does one step.',
  parameters: z.object({ step: z.string() }),
  execute: async ({ step }) => {
    appendFileSync(join(directory, 'ran'), `${step}\n`)
    while (step === 'c1' && !existsSync(join(directory, 'go'))) await wait(10)
    return `did ${step}`
  },
})

export const agents = [defineAgent({ name: 'steered', tools: [work] })]

if (process.env.STEERING_DIES === 'yes') {
  const query = Sequelize.prototype.query as (...input: unknown[]) => Promise<unknown>
  Reflect.set(Sequelize.prototype, 'query', async function (this: Sequelize, ...input: unknown[]) {
    const rows = await query.apply(this, input)
    const read = /FROM threadmill_queued_messages q WHERE .* ORDER BY q\.position$/.test(String(input[0]))
    if (read && Array.isArray(rows) && rows.length > 0) process.kill(process.pid, 'SIGKILL')
    return rows
  })
}
