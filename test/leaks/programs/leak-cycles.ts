import { once } from 'node:events'
import { get } from 'node:http'
import { text } from 'node:stream/consumers'
import { defineAgent, Threadmill } from '../../../src/index.ts'
import { above, memoryNow, openNow } from '../support/counts.ts'
import { openEyes } from '../support/eyes.ts'
import { numberOf, readInput, report } from '../support/input.ts'

// What an application opens and closes again, many times over in one process. Reports, for each, what is open beyond what was before, and
// what is in memory at the begin and at the end.

const settleMs = 20_000
/** Enough of what takes no connection. */
const few = 20
/** A compiler of schemas is replaced after fifty: both looks come after as many as there are in whole ones. */
const schemasACycle = 50

const input = readInput()
const eyes = await openEyes(input)
const agents = [defineAgent({ name: 'clerk' })]
const connect = () => Threadmill.connect({ ...input.options, agents, metrics: true })

/** A process as it starts, works a little, and ends. */
async function connection(): Promise<void> {
  const mill = await connect()
  const chat = await mill.chats.create({ agent: 'clerk' })
  const reader = chat.events({ history: 'none' })
  await mill.startWorkers().ready()
  await reader.ready
  await chat.askLater('Hello?', { enqueue: true })
  for await (const event of reader) if (event.type === 'run.finished') break
  await chat.delete()
  await mill.close()
}

async function pool(mill: Threadmill): Promise<void> {
  const pool = mill.startWorkers()
  await pool.ready()
  await pool.close()
}

/** A schema with each message: none of them is the same as another. */
async function schemas(mill: Threadmill): Promise<void> {
  const chat = await mill.chats.create({ agent: 'clerk' })
  for (let n = 0; n < schemasACycle; n++) {
    chat.withSchema({ type: 'object', properties: { [`field ${n}`]: { type: 'string', format: 'email' } } })
  }
  await chat.delete()
}

async function probe(mill: Threadmill): Promise<void> {
  const probe = await mill.serveProbe({ port: 0 })
  // Not by fetch, which remembers every origin that it was ever asked for, and this one is new each time.
  const [response] = await once(get(`${probe.url}/metrics`, { agent: false }), 'response')
  await text(response)
  await probe.close()
}

/** Someone who opens the page of a chat where nothing happens, and closes it at once or later. */
async function viewers(mill: Threadmill): Promise<void> {
  const chat = await mill.chats.create({ agent: 'clerk' })
  const gone = new AbortController()
  const readers = [chat.events(), chat.events({ signal: gone.signal }), chat.events({ after: '0' })]
  await Promise.all(readers.map((reader) => reader.ready))
  gone.abort()
  await Promise.all(readers.map((reader) => reader.return()))
  await chat.delete()
}

async function measure(name: string, cycle: () => Promise<void>, times = numberOf(input, 'times')): Promise<void> {
  const repeat = async (count: number) => {
    for (let n = 0; n < count; n++) await cycle()
  }
  await repeat(Math.max(20, Math.ceil(times / 5)))
  const before = await openNow(eyes)
  const begin = await memoryNow(['Object'])
  await repeat(times)
  const left = await above(before, eyes, settleMs)
  report(name, { times, left, begin, end: await memoryNow(['Object']) })
}

await measure('connections', connection)
const mill = await connect()
await measure('pools', () => pool(mill))
await measure('schemas', () => schemas(mill), 6)
await measure('probes', () => probe(mill), few)
await measure('viewers', () => viewers(mill), few)
await mill.close()
report('closed', null)
await eyes.close()
