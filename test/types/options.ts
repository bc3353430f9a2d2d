import { expectTypeOf } from 'expect-type'
import {
  type Chat,
  type ConnectOptions,
  type Failure,
  type Message,
  type Pool,
  type Receipt,
  Threadmill,
  ThreadmillError,
} from 'threadmill'
import { startModelServer, text } from 'threadmill/testing'

declare const mill: Threadmill
declare const chat: Chat

expectTypeOf(Threadmill.connect).returns.resolves.toEqualTypeOf<Threadmill>()
expectTypeOf<ConnectOptions['claimTtlMs']>().toEqualTypeOf<number | undefined>()
// Variables that may be missing are handed on as they are.
expectTypeOf<{ databaseUrl: string | undefined }>().toExtend<ConnectOptions>()

Threadmill.connect()
Threadmill.connect({ databaseUrl: 'sqlite:chats.sqlite', migrate: true, claimTtlMs: 30_000, embedded: false })
// @ts-expect-error: there is no such option
Threadmill.connect({ databaseURL: 'sqlite:chats.sqlite' })
// @ts-expect-error: a number of ms
Threadmill.connect({ claimTtlMs: '30 s' })
// @ts-expect-error: an agent is made by defineAgent
Threadmill.connect({ agents: [{ name: 'support' }] })
// @ts-expect-error: true or false
Threadmill.connect({ migrate: 'yes' })
// @ts-expect-error: a logger logs
Threadmill.connect({ logger: {} })

expectTypeOf(mill.startWorkers({ complete: 1, runTools: 0 })).toEqualTypeOf<Pool>()
mill.startWorkers({ isolate: { app: 'agents.ts', logLevel: 'info' } })
// @ts-expect-error: the file has to be named
mill.startWorkers({ isolate: {} })
// @ts-expect-error: there is no such queue
mill.startWorkers({ completes: 1 })

mill.chats.create({ agent: 'support', owner: 'customer 7' })
// @ts-expect-error: there is no such option
mill.chats.create({ agents: 'support' })
// @ts-expect-error: text
mill.chats.create({ owner: 7 })

expectTypeOf(chat.ask('Hello')).resolves.toEqualTypeOf<Message | null>()
chat.ask('Hello', {}, (chunk) => {
  expectTypeOf(chunk.text).toEqualTypeOf<string>()
})
// @ts-expect-error: a message has text
chat.ask()
// @ts-expect-error: there is no such option
chat.askLater('Hello', { enqueues: true })
expectTypeOf(chat.post('Hello', { whileRunning: 'interrupt', owner: { user: 7 } })).resolves.toEqualTypeOf<Receipt>()
// @ts-expect-error: there is no such way
chat.post('Hello', { whileRunning: 'wait' })
chat.receipt('one').then((receipt) => {
  // What there is of a receipt goes by its status.
  if (receipt?.status === 'failed') expectTypeOf(receipt.reason).toEqualTypeOf<Failure>()
  if (receipt?.status === 'delivered') expectTypeOf(receipt.messageId).toEqualTypeOf<string>()
  // @ts-expect-error: one that waits has no message
  if (receipt?.status === 'waiting') receipt.messageId
})
mill.jobs.complete.enqueue(chat, { delayMs: 1 })
// @ts-expect-error: a chat or its id
mill.jobs.complete.enqueue(7)

expectTypeOf<ThreadmillError['code']>().toEqualTypeOf<string>()
expectTypeOf<ThreadmillError['retryable']>().toEqualTypeOf<boolean>()
// @ts-expect-error: the root of all errors is never thrown itself
new ThreadmillError('no')

// Rows are typed by their model.
mill.models.Usage.findAll({ where: { chatId: 'one', status: 'failed' } }).then((rows) =>
  expectTypeOf(rows[0]?.totalCost).toEqualTypeOf<string | null | undefined>(),
)

startModelServer({ respond: [text('Hello')] })
// @ts-expect-error: a reply is made by text(), toolCalls() and so on
startModelServer({ respond: ['Hello'] })
