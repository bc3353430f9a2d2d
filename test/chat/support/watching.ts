import type { Chat, Chunk, LiveEvent } from '../../../src/index.ts'

const lastOnes: readonly LiveEvent['type'][] = ['run.finished', 'run.waiting', 'run.cancelled', 'run.failed']

/** Every event of a chat up to the end of its first run that has none to come. */
export async function eventsOf(chat: Chat): Promise<LiveEvent[]> {
  const events: LiveEvent[] = []
  for await (const event of chat.events({ after: '0' })) {
    events.push(event)
    if (lastOnes.includes(event.type)) break
  }
  return events
}

/** Only the events of one type. */
export function ofType<Type extends LiveEvent['type']>(
  events: readonly LiveEvent[],
  type: Type,
): Extract<LiveEvent, { type: Type }>[] {
  return events.filter((event): event is Extract<LiveEvent, { type: Type }> => event.type === type)
}

/** A chunk callback and what it has seen. */
export function collector(): { readonly chunks: Chunk[]; readonly onChunk: (chunk: Chunk) => void } {
  const chunks: Chunk[] = []
  return { chunks, onChunk: (chunk) => void chunks.push(chunk) }
}

/** What a promise rejects with; fails when it does not. */
export async function rejectionOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('The promise was fulfilled, although a rejection was expected')
}
