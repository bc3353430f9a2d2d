import type { IncomingMessage, ServerResponse } from 'node:http'
import { ownProcessOf } from '../../workers/queue-view.ts'
import type { OpenedQueue } from '../../workers/queues.ts'
import { refusedAct } from './guard.ts'

/** How Bull Board is served. */
export interface BoardOptions {
  /** Whether jobs and queues can be changed. No button can lose a message or a wish, since both are rows. Default: false. */
  readonly writable?: boolean | undefined
  /** Where the application shows a chat: each job then links to it. */
  readonly chatUrl?: ((chatId: string) => string) | undefined
}

/** A request listener of Node, and what `app.use()` of Express takes. */
export type BoardHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  next?: (error?: unknown) => void,
) => void

const headers = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}

const descriptions = {
  complete: 'Rings for chats that want to be run.',
  runTools: 'Rings for chats whose tool calls have workers of their own.',
  compact: 'Rings for chats that want a summary.',
}

/** Bull Board on these queues. */
export async function boardHandler(
  queues: readonly OpenedQueue[],
  { writable = false, chatUrl }: BoardOptions = {},
): Promise<BoardHandler> {
  const [{ createBullBoard }, { BullMQAdapter }, { BoardAdapter }] = await Promise.all([
    import('@bull-board/api'),
    import('@bull-board/api/bullMQAdapter'),
    import('./board-adapter.ts'),
  ])
  const serverAdapter = new BoardAdapter()
  createBullBoard({
    serverAdapter,
    queues: queues.map(([name, queue]) => {
      const adapter = new BullMQAdapter(queue, {
        readOnlyMode: !writable,
        description: descriptions[name],
        ...(chatUrl === undefined ? {} : { externalJobUrl: (job) => linkOf(job, chatUrl) }),
      })
      adapter.setFormatter('name', nameOf)
      return adapter
    }),
    options: { uiConfig: { boardTitle: 'Threadmill', hideDocsLink: true } },
  })
  const board = serverAdapter.getRouter() as BoardHandler
  return (request, response, next) => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
    const refusal = refusedAct(request, writable)
    if (refusal === null) return board(request, response, next)
    response.writeHead(refusal.status, { 'content-type': 'text/plain; charset=utf-8' }).end(`${refusal.text}\n`)
  }
}

interface SeenJob {
  readonly name?: string
  readonly data?: unknown
  readonly returnvalue?: unknown
  readonly progress?: unknown
}

/** What the job is about, and what it came to: a chat that waits for a person is told from one that is done. */
function nameOf(job: SeenJob): string {
  const outcome = typeof job.returnvalue === 'string' ? [outcomes[job.returnvalue] ?? job.returnvalue] : []
  const own = ownProcessOf(job.progress)
  const alone = own === null ? [] : [`alone in process ${own}`]
  return [`chat ${chatIdOf(job) ?? '?'}`, job.name, ...alone, ...outcome].join(' · ')
}

const outcomes: Readonly<Record<string, string>> = { waiting: 'waits for a person' }

function chatIdOf({ data }: SeenJob): string | null {
  return typeof data === 'object' && data !== null && 'chatId' in data ? String(data.chatId) : null
}

function linkOf(job: SeenJob, chatUrl: (chatId: string) => string): { displayText: string; href: string } {
  return { displayText: 'Open the chat', href: chatUrl(chatIdOf(job) ?? '') }
}
