import * as z from 'zod'
import { defineTool, Threadmill } from '../../../src/index.ts'

// A small application, as a process of its own: it connects with the options in THREADMILL_TEST_OPTIONS and says so. It
// catches nothing. With CLASHING_TOOLS it brings two tools of one name.

const tool = (description: string) =>
  defineTool({ name: 'refund', description, parameters: z.object({}), execute: () => 'done' })
const tools = process.env.CLASHING_TOOLS === undefined ? [] : [tool('Refunds an order.'), tool('Refunds a fee.')]

const mill = await Threadmill.connect({ ...JSON.parse(process.env.THREADMILL_TEST_OPTIONS ?? '{}'), tools })
process.stdout.write('CONNECTED\n')
await mill.close()
