import type { Said } from '../book.ts'
import type { Evidence, Violation } from '../evidence.ts'

// A message whose sender was told that it was accepted is there once, unless it was taken back. One whose sender heard
// neither may be there. What waited in the queue comes in the order in which it was accepted.

/** What is wrong with the messages of users. */
export function messageViolations({ chats, book }: Pick<Evidence, 'chats' | 'book'>): Violation[] {
  const saidOf = groupBy(book.said, ({ chatId }) => chatId)
  return chats.flatMap(({ row, messages, queue }) => {
    const stored = messages.filter(({ role }) => role === 'user').map(({ content }) => content ?? '')
    const there = [...stored, ...queue.map(({ content }) => content ?? '')]
    const said = saidOf.get(row.id) ?? []
    return [...missing(said, there), ...unknown(said, there), ...outOfOrder(said, there)].map((what) => ({
      rule: 'message' as const,
      chatId: row.id,
      what,
    }))
  })
}

function missing(said: readonly Said[], there: readonly string[]): string[] {
  return said.flatMap(({ text, heard, unqueued }) => {
    const times = there.filter((one) => one === text).length
    const [least, most] = timesOf({ heard, unqueued })
    if (times >= least && times <= most) return []
    return [`"${text}" was ${toldOf({ heard, unqueued })}, and is there ${times} times.`]
  })
}

/** How often a message may be there. */
function timesOf({ heard, unqueued }: Pick<Said, 'heard' | 'unqueued'>): readonly [least: number, most: number] {
  if (unqueued === 'yes' || heard === 'refused') return [0, 0]
  return heard === 'accepted' && unqueued === 'no' ? [1, 1] : [0, 1]
}

function toldOf({ heard, unqueued }: Pick<Said, 'heard' | 'unqueued'>): string {
  if (unqueued === 'yes') return 'taken back'
  return heard === 'unknown' ? 'sent, unheard of' : heard
}

function unknown(said: readonly Said[], there: readonly string[]): string[] {
  const texts = new Set(said.map(({ text }) => text))
  return there.filter((text) => !texts.has(text)).map((text) => `"${text}" is there, and nobody said it.`)
}

function outOfOrder(said: readonly Said[], there: readonly string[]): string[] {
  return [true, false].flatMap((steer) => {
    const sure = said.filter((one) => one.steer === steer && one.heard === 'accepted' && one.unqueued === 'no')
    return sure.flatMap((later) => {
      const overtaken = sure.find(
        (one) => one.ended < later.begun && there.indexOf(one.text) > there.indexOf(later.text),
      )
      return overtaken === undefined ? [] : [`"${later.text}" came before "${overtaken.text}", which was queued first.`]
    })
  })
}

export function groupBy<T>(list: readonly T[], key: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const one of list) {
    const group = groups.get(key(one))
    if (group === undefined) groups.set(key(one), [one])
    else group.push(one)
  }
  return groups
}
