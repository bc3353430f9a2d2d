import type { LoggedRequest } from '../../../src/testing/index.ts'
import { requestOf } from '../../processes/support/rows.ts'
import type { ChatEvidence, Evidence, Violation } from '../evidence.ts'
import { headers } from '../messages.ts'
import { requestNamedBy } from '../model.ts'
import { groupBy } from './messages.ts'

// Each answer names the request that it was made for. So the rows and the model's log tell whether an answer was made
// for the transcript that it stands in, by a claim that was the chat's then, and whether anybody asked for it again.

interface Answer {
  readonly id: string
  readonly position: number
  readonly request: LoggedRequest
  /** What stands before it in the rows. */
  readonly before: string
}

/** What is wrong with the answers. */
export function lineageViolations({ chats, requests }: Pick<Evidence, 'chats' | 'requests'>): Violation[] {
  const byId = new Map(requests.map((request) => [request.id, request]))
  const byChat = groupBy(requests, ({ chat }) => chat ?? '')
  return chats.flatMap((chat) => {
    const asked = (byChat.get(chat.row.id) ?? []).map((request) => ({ request, before: shapeOf(requestOf(request)) }))
    const violation = (rule: 'claim' | 'answer', what: string): Violation => ({ rule, chatId: chat.row.id, what })
    const answers = answersOf(chat, byId)
    return [
      ...chat.messages
        .filter(({ role, finishReason }) => role === 'assistant' && finishReason !== 'cancelled')
        .filter(({ id }) => !answers.some((answer) => answer.id === id))
        .map(({ position }) =>
          violation('answer', `The answer at position ${position} names no request of the model.`),
        ),
      ...answers.flatMap((answer, at) => [
        ...torn(answer, asked).map((what) => violation('claim', what)),
        ...outlived(answer, answers[at - 1]).map((what) => violation('claim', what)),
        ...unpaid(answer, chat).map((what) => violation('claim', what)),
        ...askedAgain(answer, asked).map((what) => violation('answer', what)),
      ]),
    ]
  })
}

type Asked = readonly { readonly request: LoggedRequest; readonly before: string }[]

function answersOf({ messages }: ChatEvidence, byId: ReadonlyMap<string, LoggedRequest>): Answer[] {
  const calls = messages.flatMap(({ toolCalls }) => toolCalls)
  const lines = messages.map((message) => {
    if (message.role === 'tool') return `T(${calls.find(({ resultId }) => resultId === message.id)?.toolCallId})`
    if (message.role !== 'assistant') return `U ${message.content}`
    const ids = message.toolCalls.map(({ toolCallId }) => toolCallId)
    return ids.length > 0 ? `A[${ids.join(', ')}]` : `A ${message.content}`
  })
  return messages.flatMap((message, at) => {
    if (message.role !== 'assistant' || message.finishReason === 'cancelled') return []
    const named = requestNamedBy(
      `${message.content} ${JSON.stringify(message.toolCalls.map((call) => call.arguments))}`,
    )
    const request = byId.get(named ?? '')
    if (request === undefined) return []
    return [{ id: message.id, position: message.position, request, before: shapeOf(lines.slice(0, at)) }]
  })
}

/** Results of one round in any order: they are stored as they come, and sent as they were asked for. */
function shapeOf(lines: readonly string[]): string {
  const shape: string[] = []
  let results: string[] = []
  for (const line of [...lines, '']) {
    if (line.startsWith('T(')) results.push(line)
    else {
      shape.push(...results.toSorted(), line)
      results = []
    }
  }
  return shape.join('\n')
}

export const tokenOf = ({ headers: sent }: LoggedRequest): number => Number(sent[headers.token] ?? 0)
export const workerOf = ({ headers: sent }: LoggedRequest): string => String(sent[headers.worker] ?? '')

function torn({ request, before, position }: Answer, asked: Asked): string[] {
  const sent = asked.find((one) => one.request === request)?.before
  if (sent === before) return []
  return [
    `The answer at position ${position} was made for another transcript (${request.id}, claim ${tokenOf(request)}): ` +
      `asked for ${JSON.stringify(sent?.split('\n').slice(-5))}, stands behind ${JSON.stringify(before.split('\n').slice(-5))}.`,
  ]
}

function outlived({ request, position }: Answer, last: Answer | undefined): string[] {
  if (last === undefined || tokenOf(last.request) <= tokenOf(request)) return []
  return [
    `Claim ${tokenOf(request)} committed position ${position} after claim ${tokenOf(last.request)} had committed.`,
  ]
}

/** Its usage entry says by which claim and for whom it was made. */
function unpaid({ id, request, position }: Answer, { usages }: ChatEvidence): string[] {
  const entries = usages.filter(({ messageId }) => messageId === id)
  const own = entries.some(({ claimToken, model }) => claimToken === tokenOf(request) && model === workerOf(request))
  return own ? [] : [`The answer at position ${position} is linked to no usage entry of claim ${tokenOf(request)}.`]
}

/** One that had lost its claim may ask in vain; its claim is an earlier one. */
function askedAgain({ request, position, before }: Answer, asked: Asked): string[] {
  const from = asked.findIndex((one) => one.request === request)
  const again = asked.slice(from + 1).filter((one) => one.before === before)
  return again
    .filter((one) => tokenOf(one.request) >= tokenOf(request))
    .map(
      (one) =>
        `The answer at position ${position} (${request.id}, claim ${tokenOf(request)}) was asked for again ` +
        `by ${workerOf(one.request)} (${one.request.id}, claim ${tokenOf(one.request)}).`,
    )
}
