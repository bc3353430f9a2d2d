import type { ChatEvent } from '../../src/index.ts'

/** What a page shows of a chat: what it makes of events, as an application would. */
export interface Page {
  /** The text of each message, by id. */
  readonly texts: ReadonlyMap<string, string>
  /** The types of everything that came, in order. */
  readonly types: readonly ChatEvent['type'][]
  /** The id to go on from. */
  readonly last: string | undefined
  show(event: ChatEvent): void
}

export function newPage(): Page {
  const texts = new Map<string, string>()
  const stored = new Set<string>()
  const types: ChatEvent['type'][] = []
  let last: string | undefined
  return {
    texts,
    types,
    get last() {
      return last
    },
    show(event) {
      last = event.id
      types.push(event.type)
      if (event.type === 'text.delta') texts.set(event.messageId, (texts.get(event.messageId) ?? '') + event.text)
      if (event.type === 'attempt.restarted') texts.delete(event.replaces)
      if (event.type === 'message.finished') {
        stored.add(event.messageId)
        texts.set(event.messageId, event.text ?? '')
      }
      if (event.type === 'resync') for (const id of texts.keys()) if (!stored.has(id)) texts.delete(id)
    },
  }
}
