import type { RequestMessage } from '../providers/provider.ts'
import { wellFormed } from '../tools/results.ts'
import { sum } from './context-size.ts'

const shortest = 400
const mark = '\n[... cut, too long to be summarised whole ...]\n'

/**
 * Shortens the longest texts, from their middle, until all together have at most `budget` characters, or none is long. For
 * summaries alone: a message that no request can hold must not keep its chat from ever being summarised. System messages
 * and the last message stay whole.
 */
export function shorten(messages: readonly RequestMessage[], budget: number): RequestMessage[] {
  const fitted = [...messages]
  for (;;) {
    const excess = sum(fitted.map(lengthOf)) - budget
    if (excess <= 0) return fitted
    const longest = longestOf(fitted)
    const message = fitted[longest]
    if (message === undefined || lengthOf(message) <= shortest) return fitted
    const kept = Math.max(shortest / 2, lengthOf(message) / 2, lengthOf(message) - excess - mark.length)
    fitted[longest] = { ...message, content: shortened(message.content ?? '', Math.floor(kept)) }
  }
}

function longestOf(messages: readonly RequestMessage[]): number {
  let longest = -1
  for (const [at, message] of messages.entries()) {
    if (message.role === 'system' || at === messages.length - 1) continue
    const best = messages[longest]
    if (best === undefined || lengthOf(message) > lengthOf(best)) longest = at
  }
  return longest
}

const lengthOf = (message: RequestMessage) => (message.content ?? '').length

function shortened(text: string, kept: number): string {
  const half = Math.ceil(kept / 2)
  return wellFormed(`${text.slice(0, half)}${mark}${text.slice(text.length - half)}`)
}
