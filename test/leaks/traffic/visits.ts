import { randomUUID } from 'node:crypto'
import { CancelledError } from '../../../src/index.ts'
import { afterwards, answered, atTheDesk, expectEnd, newChat, type Shop, until } from './shop.ts'

/** What one customer does, from the first question on. */
export type Visit = (shop: Shop) => Promise<void>

async function isWatched(shop: Shop): Promise<void> {
  const chat = await newChat(shop)
  const gone = new AbortController()
  const viewers = [
    (async () => {
      for await (const event of chat.events()) if (event.type === 'text.delta') break
    })(),
    (async () => {
      for await (const event of chat.events({ signal: gone.signal })) if (event.type === 'run.started') gone.abort()
    })(),
  ]
  await answered(shop, chat, 'slow')
  await Promise.all(viewers)
  // Somebody comes when all is over, and somebody who closes the page at once.
  for await (const event of (await atTheDesk(shop, chat)).events()) if (event.type === 'run.finished') break
  await chat.events().return()
}

async function asksDirectly(shop: Shop): Promise<void> {
  const chat = await newChat(shop)
  const seen: string[] = []
  await chat.ask('say hello', {}, ({ text }) => void seen.push(text ?? ''))
  await chat.withSchema({ type: 'object', properties: { city: { type: 'string' } } }).ask('json please')
  shop.turn(2)
  await chat.render()
  await chat.delete()
}

async function callsTools(shop: Shop): Promise<void> {
  const chat = await newChat(shop)
  for (const name of ['look_up', 'draw', 'fail']) {
    expectEnd(await answered(shop, chat, `call ${name}`), 'run.finished', name)
  }
}

async function isServedByTheQueue(shop: Shop): Promise<void> {
  const chat = await newChat(shop, { agent: 'back office' })
  expectEnd(await answered(shop, chat, 'call look_up'), 'run.finished', 'the back office')
}

async function needsApproval(shop: Shop): Promise<void> {
  const chat = await newChat(shop)
  const other = await atTheDesk(shop, chat)
  for (const verb of ['approve', 'deny'] as const) {
    expectEnd(await answered(shop, chat, 'call pay'), 'run.waiting', 'pay')
    const [call] = await other.pendingApprovals()
    if (call === undefined) throw new Error('Nothing waits for a decision')
    expectEnd(await afterwards(shop, chat, () => other[verb](call)), 'run.finished', verb)
  }
}

async function isAskedBack(shop: Shop): Promise<void> {
  const chat = await newChat(shop)
  expectEnd(await answered(shop, chat, 'call where'), 'run.waiting', 'where')
  const [question] = await chat.pendingInputs()
  if (question === undefined) throw new Error('Nobody is asked')
  await afterwards(shop, chat, async () => (await atTheDesk(shop, chat)).answer(question, { street: 'Elm Street 5' }))
}

async function asksTheHelper(shop: Shop): Promise<void> {
  const chat = await newChat(shop)
  await until(chat, ['run.finished', 'run.failed'], () => chat.askLater('call help', { enqueue: true }))
  shop.turn(2)
}

async function saysMore(shop: Shop): Promise<void> {
  const chat = await newChat(shop)
  await until(chat, ['text.delta'], () => chat.askLater('hang', { enqueue: true }))
  await chat.unqueue(await chat.queue('not this', { steer: false }))
  await until(chat, ['run.finished'], () => chat.post('say that', { whileRunning: 'interrupt' }))
  shop.turn(2)
  await until(chat, ['run.finished'], async () => {
    await chat.askLater('slow', { enqueue: true })
    await chat.queue('say this too')
  })
  shop.turn()
}

async function cancels(shop: Shop): Promise<void> {
  const chat = await newChat(shop)
  await until(chat, ['text.delta'], () => chat.askLater('hang', { enqueue: true }))
  const other = await atTheDesk(shop, chat)
  expectEnd(await afterwards(shop, chat, () => other.cancel()), 'run.cancelled', 'the cancel')
  expectEnd(await answered(shop, chat, 'call pay'), 'run.waiting', 'pay')
  expectEnd(await afterwards(shop, chat, () => other.cancel()), 'run.cancelled', 'the cancel of what waits')
}

async function cancelsDirectly(shop: Shop): Promise<void> {
  const chat = await newChat(shop)
  const other = await atTheDesk(shop, chat)
  const asked = chat.ask('hang', {}, () => void other.cancel())
  await asked.catch((error: unknown) => {
    if (!(error instanceof CancelledError)) throw error
  })
  shop.turn()
}

async function meetsFailures(shop: Shop): Promise<void> {
  const chat = await newChat(shop)
  expectEnd(await answered(shop, chat, `stumble ${randomUUID()}`), 'run.finished', 'the stumble')
  expectEnd(await answered(shop, chat, `cut ${randomUUID()}`), 'run.finished', 'the cut')
  expectEnd(await answered(shop, chat, 'refuse'), 'run.failed', 'the refusal')
  expectEnd(await answered(shop, chat, 'say it'), 'run.finished', 'what came after')
}

async function sendsFiles(shop: Shop): Promise<void> {
  const chat = await newChat(shop)
  const file = { data: Buffer.from(`bytes ${randomUUID()}`), filename: 'note.txt' }
  await afterwards(shop, chat, () => chat.askLater('say what', { attachments: [file], enqueue: true }))
  for (const { attachments } of await chat.messages()) for (const one of attachments ?? []) await one.bytes()
  await chat.delete()
}

async function editsAndForks(shop: Shop): Promise<void> {
  const chat = await newChat(shop)
  await answered(shop, chat, `say ${'more and '.repeat(50)}more`)
  await afterwards(shop, chat, () => chat.regenerate({ enqueue: true }))
  const fork = await shop.web.chats.fork(chat)
  await answered(shop, fork, 'say two')
  await fork.compact({ keep: 1 })
  await shop.web.jobs.compact.enqueue(chat)
  await fork.delete()
}

async function asksInTransactions(shop: Shop): Promise<void> {
  const chat = await newChat(shop)
  await shop.web
    .transaction(async (transaction) => {
      await chat.askLater('never said', { enqueue: true, transaction })
      throw new RangeError('rolled back')
    })
    .catch((error: unknown) => {
      if (!(error instanceof RangeError)) throw error
    })
  const asked = () =>
    shop.web.transaction(async (transaction) => {
      await chat.askLater('say it', { transaction })
      await shop.web.jobs.complete.enqueue(chat.id, { transaction, delayMs: 20 })
    })
  await afterwards(shop, chat, asked)
}

async function isLookedAt(shop: Shop): Promise<void> {
  await shop.desk.chats.list({ limit: 20 })
  await shop.desk.approvals.list({ limit: 20 })
  await shop.desk.usage.total({ owner: 'customer 1' })
  await shop.desk.metrics()
}

/** All that customers do in the shop. */
export const visits: readonly Visit[] = [
  isWatched,
  asksDirectly,
  callsTools,
  isServedByTheQueue,
  needsApproval,
  isAskedBack,
  asksTheHelper,
  saysMore,
  cancels,
  cancelsDirectly,
  meetsFailures,
  sendsFiles,
  editsAndForks,
  asksInTransactions,
  isLookedAt,
]
