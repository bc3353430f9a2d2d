import type { Chat, ChatEvent, NewChat, Threadmill } from '../../../src/index.ts'

/** The processes of a shop, as far as one process can hold them: one that serves users, and one in which people decide. */
export interface Shop {
  readonly web: Threadmill
  readonly desk: Threadmill
  /** Counts the turns that it was told of. */
  turn(count?: number): void
}

/** A chat of the desk's agent. */
export function newChat(shop: Shop, more: NewChat = {}): Promise<Chat> {
  return shop.web.chats.create({ agent: 'desk', owner: `customer ${Math.floor(Math.random() * 50)}`, ...more })
}

/** The same chat, as the people who decide see it. */
export function atTheDesk(shop: Shop, chat: Chat): Promise<Chat> {
  return shop.desk.chats.find(chat.id)
}

type EventType = ChatEvent['type']

/** Does something and waits, as a viewer, for one of these events that comes of it; a run that is to be tried again is waited for. */
export async function until(chat: Chat, types: readonly EventType[], act: () => Promise<unknown>): Promise<ChatEvent> {
  const reader = chat.events({ history: 'none', signal: AbortSignal.timeout(60_000) })
  await reader.ready
  await act()
  for await (const event of reader) {
    if (types.includes(event.type) && !(event.type === 'run.failed' && event.retryInMs !== null)) return event
  }
  throw new Error(`Chat ${chat.id} has come to none of ${types.join(', ')}: ${JSON.stringify(await chat.diagnosis())}`)
}

const ends = ['run.finished', 'run.failed', 'run.cancelled', 'run.waiting'] as const

/** Asks, and waits until a worker's run ends; resolves to how. */
export async function answered(shop: Shop, chat: Chat, question: string): Promise<ChatEvent> {
  const end = await until(chat, ends, () => chat.askLater(question, { enqueue: true }))
  shop.turn()
  return end
}

/** Does something with a chat, and waits until the run that comes of it ends. */
export async function afterwards(shop: Shop, chat: Chat, act: () => Promise<unknown>): Promise<ChatEvent> {
  const end = await until(chat, ends, act)
  shop.turn()
  return end
}

/** Throws unless it is what was expected: traffic that goes another way than it should would measure something else. */
export function expectEnd(is: ChatEvent, expected: EventType, what: string): void {
  if (is.type !== expected) throw new Error(`${what}: ${JSON.stringify(is)} instead of ${expected}`)
}
