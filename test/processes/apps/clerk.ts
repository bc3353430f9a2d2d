import * as z from 'zod'
import { defineAgent, defineTool, type OnInterrupted } from '../../../src/index.ts'
import { visitDesk as visit } from '../support/desk-tool.ts'
import { dieAtStatement } from '../support/die.ts'

// The agents of worker processes in tests. Their tools call the test's desk, which counts and holds them.

const simple = (name: string) =>
  defineTool({
    name,
    description: `Looks up the ${name}.`,
    parameters: z.object({ of: z.string().optional() }),
    execute: (args, context) => visit(name, args, context),
  })

/** Pays, and then says so at the desk, where the test can hold it: the effect has happened, the result is not stored. */
const charge = (onInterrupted: OnInterrupted) =>
  defineTool({
    name: 'charge',
    description: 'Charges a card.',
    parameters: z.object({ eur: z.number() }),
    onInterrupted,
    async execute(args, context) {
      const paid = await visit('pay', args, context)
      await visit('paid', args, context)
      return paid
    },
  })

/** Blocks its process, timers and sockets included. */
const block = defineTool({
  name: 'block',
  description: 'Blocks.',
  parameters: z.object({ ms: z.number() }),
  async execute(args, context) {
    await visit('block', args, context)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, args.ms)
    return 'blocked'
  },
})

/** What it attaches differs from process to process. */
const draw = defineTool({
  name: 'draw',
  description: 'Draws.',
  parameters: z.object({}),
  async execute(args, context) {
    await context.attach({ data: Buffer.from(`drawn by ${process.pid}`), filename: 'drawing.txt' })
    return visit('draw', args, context)
  },
})

const lookups = [simple('rate'), simple('tax'), simple('fee')]

export const agents = [
  defineAgent({ name: 'clerk', tools: [...lookups, block] }),
  defineAgent({ name: 'queued clerk', tools: lookups, toolExecution: 'queue' }),
  defineAgent({ name: 'cashier', tools: [charge('retry')] }),
  defineAgent({ name: 'careful cashier', tools: [charge('fail')] }),
  defineAgent({ name: 'mortal', attempts: 2 }),
  defineAgent({ name: 'artist', tools: [draw] }),
]
export const observe = { onStatement: dieAtStatement() }
