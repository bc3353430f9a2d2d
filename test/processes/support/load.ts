import { expect } from 'chai'
import type { Chat, Threadmill } from '../../../src/index.ts'
import { type LoggedRequest, type ReplyFunction, text, toolCalls } from '../../../src/testing/index.ts'
import { until } from '../../support/until.ts'
import { expectWhole, isAtRest } from './rows.ts'

export interface Script {
  /** Tool rounds before the answer. */
  readonly rounds: number
  /** From request to answer, in ms. */
  readonly latencyMs: number
}

/** A model that has its tool run a few times and then answers; each of its answers takes a while. */
export function loadModel({ rounds, latencyMs }: Script): ReplyFunction {
  return (request) => {
    const done = request.messages.filter(({ role }) => role === 'tool').length
    const options = { delayMs: latencyMs }
    if (done < rounds) return toolCalls([{ name: 'work', arguments: { round: done } }], options)
    return text(`answer to ${questionOf(request)}`, options)
  }
}

/** What a chat of a load test was asked, which tells its requests from those of the others. */
export function questionOf(request: LoggedRequest): string {
  return String(request.messages.find(({ role }) => role === 'user')?.content)
}

/** Makes chats of the load agent; the nth is `chats[n]` and will be asked `chat n`. */
export async function makeChats(mill: Threadmill, count: number): Promise<Chat[]> {
  const chats: Chat[] = []
  for (let at = 0; at < count; at++) chats.push(await mill.chats.create({ agent: 'load' }))
  return chats
}

/** Asks each of these chats its question and wants it answered. */
export async function askAll(chats: readonly Chat[], from: number, count: number): Promise<void> {
  const part = chats.slice(from, from + count)
  await Promise.all(part.map((chat, at) => chat.askLater(`chat ${from + at}`, { enqueue: true })))
}

/** Waits until every chat is answered and given back. */
export async function allAtRest(chats: readonly Chat[], limitMs: number): Promise<void> {
  let left = [...chats]
  await until(
    'every chat is answered',
    async () => {
      const resting = await Promise.all(left.slice(0, 10).map(isAtRest))
      left = [...left.slice(0, 10).filter((_, at) => resting[at] === false), ...left.slice(10)]
      return left.length === 0
    },
    limitMs,
  )
}

/** Pairs of requests for one chat that were open at the same time. */
export function overlapsOf(requests: readonly LoggedRequest[]): [string, string][] {
  const last = new Map<string, LoggedRequest>()
  const overlaps: [string, string][] = []
  for (const request of requests) {
    const question = questionOf(request)
    const before = last.get(question)
    if (before !== undefined && (before.endedAt === null || before.endedAt > request.startedAt)) {
      overlaps.push([before.id, request.id])
    }
    last.set(question, request)
  }
  return overlaps
}

/** Checks that each chat was asked once and answered once, and that every call has its own result. */
export async function expectAnswered(mill: Threadmill, chats: readonly Chat[], rounds: number): Promise<void> {
  for (const [at, chat] of chats.entries()) {
    const messages = await chat.messages()
    expect(messages.map(({ role }) => role)).to.eql([
      'user',
      ...Array.from({ length: rounds }, () => ['assistant', 'tool']).flat(),
      'assistant',
    ])
    expect(messages[0]?.content).to.equal(`chat ${at}`)
    expect(messages.at(-1)?.content).to.equal(`answer to chat ${at}`)
    const calls = messages.flatMap(({ toolCalls }) => toolCalls)
    expect(calls).to.have.length(rounds)
    for (const call of calls) {
      const result = messages.find(({ id }) => id === call.resultId)
      expect(result?.outcome).to.equal('succeeded')
      expect(result?.content).to.contain(call.id)
    }
    await expectWhole(mill, chat)
  }
}

/** Writes a line of figures among the test results. */
export function report(line: string): void {
  process.stdout.write(`      ${line}\n`)
}
