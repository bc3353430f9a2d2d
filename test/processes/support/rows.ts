import { expect } from 'chai'
import type { Chat, Threadmill, UsageRow } from '../../../src/index.ts'
import type { LoggedRequest } from '../../../src/testing/index.ts'
import { until } from '../../support/until.ts'

/** A transcript in short: `U text`, `A text`, `A[rate, tax]`, `T(rate) outcome`. */
export async function transcriptOf(chat: Chat): Promise<string[]> {
  const messages = await chat.messages()
  const calls = messages.flatMap((message) => message.toolCalls)
  return messages.map((message) => {
    if (message.role === 'tool') {
      return `T(${calls.find((call) => call.resultId === message.id)?.name}) ${message.outcome}`
    }
    if (message.role !== 'assistant') return `U ${message.content}`
    const names = message.toolCalls.map((call) => call.name)
    return names.length > 0 ? `A[${names.join(', ')}]` : `A ${message.content}`
  })
}

/** A request's messages in short: `U text`, `A text`, `A[id, id]`, `T(id)`. */
export function requestOf(request: LoggedRequest | undefined): string[] {
  return (request?.messages ?? []).map((message) => {
    if (message.role === 'tool') return `T(${message.tool_call_id})`
    if (message.role !== 'assistant') return `U ${message.content}`
    const ids = (message.tool_calls ?? []).map((call) => call.id)
    return ids.length > 0 ? `A[${ids.join(', ')}]` : `A ${message.content}`
  })
}

/** Whether the chat is answered and nobody holds it any more. */
export async function isAtRest(chat: Chat): Promise<boolean> {
  return (await chat.isComplete()) && !(await chat.running())
}

/** A chat's usage entries, the oldest first. */
export async function usagesOf(mill: Threadmill, chat: Chat): Promise<UsageRow[]> {
  const order: [string, string][] = [
    ['createdAt', 'ASC'],
    ['id', 'ASC'],
  ]
  return (await mill.models.Usage.findAll({ where: { chatId: chat.id }, order })).map((row) => row.get() as UsageRow)
}

/** A chat's row as it is stored. */
export async function rowOf(mill: Threadmill, chat: Chat) {
  const row = await mill.models.Chat.findByPk(chat.id)
  if (row === null) throw new Error(`There is no chat ${chat.id}`)
  return row
}

/**
 * Checks what must hold of a chat at rest, whatever died on the way: positions without a gap, one result for every call
 * and one call for every result, no attempt left open, and nobody who holds or wants it. The dead leave a lapsed claim
 * and a wish behind, even on a chat that is answered: the next worker that is rung clears them, and is waited for.
 */
export async function expectWhole(mill: Threadmill, chat: Chat): Promise<void> {
  await until('nobody holds or wants it', async () => {
    const { claimedBy, wantedAt } = await rowOf(mill, chat)
    return claimedBy === null && wantedAt === null
  })
  const messages = await chat.messages()
  const row = await rowOf(mill, chat)
  expect(messages.map(({ position }) => position)).to.eql(messages.map((_, at) => at))
  expect(row.nextPosition).to.equal(messages.length)
  const results = messages.filter(({ role }) => role === 'tool').map(({ id }) => id)
  const linked = messages.flatMap(({ toolCalls }) => toolCalls.map(({ resultId }) => resultId))
  expect(linked).to.have.members(results)
  expect(new Set(results).size).to.equal(results.length)
  const usages = await usagesOf(mill, chat)
  expect(usages.filter(({ status }) => status === 'pending')).to.eql([])
  const answers = messages.filter(({ role }) => role === 'assistant').map(({ id }) => id)
  const paid = usages.filter(({ status, messageId }) => status === 'succeeded' && messageId !== null)
  expect(paid.map(({ messageId }) => messageId)).to.have.members(answers)
  const { failure, attempts } = row
  expect({ failure, attempts }).to.eql({ failure: null, attempts: 0 })
}

/**
 * Waits until the process of a chat's first request, which had lost its claim, has closed its usage entry by itself, whatever its successor had
 * closed it as.
 */
export async function untilLateClosed(mill: Threadmill, chat: Chat, limitMs: number): Promise<void> {
  const isClosed = async () => {
    const [first] = await usagesOf(mill, chat)
    return first !== undefined && first.status !== 'pending' && first.errorCode !== 'orphaned'
  }
  await until('the process that was late closed its usage entry', isClosed, limitMs)
}

/**
 * Checks the usage entry of a request whose process lost its claim and woke up to the answer. Whichever it hears of first, it goes by: the
 * answer in its socket, or the loss of its claim, which breaks the answer off.
 */
export function expectLate(usage: UsageRow | undefined): void {
  expect(usage).to.include({ messageId: null })
  const cost = [usage?.inputTokens, usage?.outputTokens]
  if (usage?.status === 'succeeded') expect(cost, 'what the lost answer cost').to.not.include(null)
  else expect([usage?.status, ...cost], 'what is not known').to.eql(['cancelled', null, null])
}
