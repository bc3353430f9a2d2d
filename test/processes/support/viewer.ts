import type { Chat, ChatEvent } from '../../../src/index.ts'

/** Someone who watches a chat from its beginning. */
export interface Viewer {
  readonly events: readonly ChatEvent[]
  end(): Promise<void>
}

/** Collects a chat's live events until `end`. */
export function watch(chat: Chat): Viewer {
  const stop = new AbortController()
  const events: ChatEvent[] = []
  const watching = (async () => {
    for await (const event of chat.events({ after: '0', signal: stop.signal })) events.push(event)
  })()
  return {
    events,
    end() {
      stop.abort()
      return watching
    },
  }
}

/** The text that one run showed. */
export function textOf(events: readonly ChatEvent[], claimToken: number | undefined): string {
  return events
    .flatMap((event) => (event.type === 'text.delta' && event.claimToken === claimToken ? [event.text] : []))
    .join('')
}
