import { setTimeout as wait } from 'node:timers/promises'
import { Threadmill } from '../../../src/index.ts'
import { keysOf } from '../support/counts.ts'
import { openEyes } from '../support/eyes.ts'
import { numberOf, readInput, report } from '../support/input.ts'
import { agents } from '../traffic/agents.ts'

// A worker process that nobody gives any work. Reports how many timers it keeps, the keys that its queues have, and its CPU time.

const input = readInput()
const mill = await Threadmill.connect({ ...input.options, agents })
await mill.startWorkers().ready()
// Its code is compiled, and what begins with it is over.
await wait(numberOf(input, 'settleMs'))
const begun = performance.now()
const before = process.cpuUsage()
await wait(numberOf(input, 'windowMs'))
const { user, system } = process.cpuUsage(before)
report('cpuPercent', (user + system) / 10 / (performance.now() - begun))
const timers: number[] = []
for (let look = 0; look < 20; look++) {
  timers.push(process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length)
  await wait(100)
}
report('timers', Math.max(...timers))
const eyes = await openEyes(input)
const prefix = `${input.options.redisPrefix}:`
const { lasting } = await keysOf(eyes.redis)
const own = Object.keys(lasting).filter((key) => key.startsWith(prefix))
report('keys', own.map((key) => key.slice(prefix.length)).toSorted())
await eyes.close()
await mill.close()
