import { pipeline } from 'node:stream/promises'
import express, { type ErrorRequestHandler, type Express, type Request } from 'express'
import { DataTypes } from 'sequelize'
import { type Chat, type ChatEvent, ChatNotFoundError, StateError, type Threadmill, UsageError } from 'threadmill'
import * as z from 'zod'
import { support } from './agents.ts'

const keepAliveMs = 15_000
const newMessage = z.object({ text: z.string().min(1), order: z.string().optional() })
const decision = z.object({ approve: z.boolean() })

/** The HTTP side: it stores what people say and decide, and shows what happens. Workers run the chats. */
export async function createApp(mill: Threadmill): Promise<Express> {
  // A table of the application's, in the same database. A real one comes from a migration.
  const OrderNote = mill.sequelize.define('OrderNote', {
    chatId: { type: DataTypes.STRING(36), allowNull: false },
    order: { type: DataTypes.STRING, allowNull: false },
    text: { type: DataTypes.TEXT, allowNull: false },
  })
  await OrderNote.sync()

  /** The chat of the path, if it belongs to whoever asks. */
  async function chatOf(request: Request<{ id: string }>): Promise<Chat> {
    const chat = await mill.chats.find(request.params.id)
    if (chat.owner !== userOf(request)) throw new Refusal(403, 'It is the chat of somebody else.')
    return chat
  }

  const app = express()
  app.use(express.json())

  app.post('/chats', async (request, response) => {
    const chat = await mill.chats.create({ agent: support, owner: userOf(request) })
    response.status(201).json({ id: chat.id })
  })

  app.post('/chats/:id/messages', async (request, response) => {
    const chat = await chatOf(request)
    const { text, order } = newMessage.parse(request.body)
    // The note, the message and the wish to have it answered: all of them or none.
    await mill.transaction(async (transaction) => {
      if (order !== undefined) await OrderNote.create({ chatId: chat.id, order, text }, { transaction })
      await chat.askLater(text, { enqueue: true, transaction })
    })
    response.status(202).end()
  })

  app.get('/chats/:id/events', async (request, response) => {
    const chat = await chatOf(request)
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    const events = chat.events({ after: request.get('last-event-id'), signal: gone.signal })
    response.set({ 'content-type': 'text/event-stream', 'cache-control': 'no-cache' }).flushHeaders()
    const keepAlive = setInterval(() => response.write(':\n\n'), keepAliveMs)
    try {
      await pipeline(framesOf(events), response)
    } catch (error) {
      if (!gone.signal.aborted) throw error
    } finally {
      clearInterval(keepAlive)
    }
  })

  app.post('/chats/:id/approvals/:callId', async (request, response) => {
    const chat = await chatOf(request)
    // Whoever decides first has decided; anybody after that is told so, with 409.
    if (decision.parse(request.body).approve) await chat.approve(request.params.callId, { ifUndecided: true })
    else await chat.deny(request.params.callId, { ifUndecided: true })
    response.status(204).end()
  })

  app.post('/chats/:id/cancel', async (request, response) => {
    const chat = await chatOf(request)
    await chat.cancel()
    response.status(204).end()
  })

  app.use(answerErrors)
  return app
}

class Refusal extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

async function* framesOf(events: AsyncIterable<ChatEvent>): AsyncGenerator<string> {
  for await (const event of events) yield `id: ${event.id}\ndata: ${JSON.stringify(event)}\n\n`
}

/** Stands for your login. */
function userOf(request: Request<object>): string {
  const user = request.get('x-user')
  if (user === undefined) throw new Refusal(401, 'Say who you are.')
  return user
}

const answerErrors: ErrorRequestHandler = (error, _request, response, next) => {
  const status = statusOf(error)
  if (status === null || response.headersSent) return next(error)
  response.status(status).json({ error: error.message })
}

/** Null: nothing that a client could mend. */
function statusOf(error: unknown): number | null {
  if (error instanceof Refusal) return error.status
  if (error instanceof ChatNotFoundError) return 404
  if (error instanceof StateError) return 409
  if (error instanceof UsageError || error instanceof z.ZodError) return 400
  return null
}
