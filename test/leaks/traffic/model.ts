import {
  cut,
  hang,
  httpError,
  type LoggedRequest,
  type Reply,
  type Respond,
  text,
  toolCalls,
} from '../../../src/testing/index.ts'

/**
 * The model of the traffic: a question says what it is answered with. `call NAME …` calls a tool and then answers; `slow`, `hang`, `refuse`,
 * `stumble ID` and `cut ID` (the first time only), `json`; anything else is answered at once.
 */
export function trafficModel(): Respond {
  const seen = new Set<string>()
  const isFirst = (question: string) => !seen.has(question) && seen.add(question) !== undefined
  return (request) => {
    const question = questionOf(request)
    const [what = '', name = ''] = question.split(' ')
    switch (what) {
      case 'call':
        return request.messages.at(-1)?.role === 'tool' ? words(question) : toolCalls([callOf(name)])
      case 'slow':
        return text('one two three four five six seven eight nine ten', { chunkDelayMs: 15 })
      case 'hang':
        return hang({ after: 'Some words' })
      case 'refuse':
        return httpError(400, 'not like this')
      case 'stumble':
        return isFirst(question) ? httpError(503, 'busy', { 'retry-after-ms': '5' }) : words(question)
      case 'cut':
        return isFirst(question) ? cut({ after: 'Some words' }) : words(question)
      case 'json':
        return text('{"city":"Bonn"}')
      default:
        return words(question)
    }
  }
}

const words = (question: string): Reply => text(`The answer to ${question.slice(0, 40)}`)

function callOf(name: string) {
  const args = { help: { message: 'Find it.' }, look_up: { of: 'rate' } }
  return { name, arguments: name in args ? args[name as keyof typeof args] : {} }
}

function questionOf({ messages }: LoggedRequest): string {
  const content = messages.findLast(({ role }) => role === 'user')?.content
  if (!Array.isArray(content)) return String(content)
  return content.flatMap((part) => (part.type === 'text' ? [String(part.text)] : [])).join(' ')
}
