import { cut, hang, httpError, type LoggedRequest, type Reply, text, toolCalls } from '../../src/testing/index.ts'
import { randomOf } from '../simulation/random.ts'
import { type ToolName, toolKinds } from './agents.ts'

/** How the model fails: too many requests, an error, half a stream, nothing. */
export type ModelFault = 'model-429' | 'model-500' | 'model-half' | 'model-nothing'

/** How often each comes, of all requests. */
const shares: readonly (readonly [fault: ModelFault, share: number])[] = [
  ['model-429', 0.025],
  ['model-500', 0.02],
  ['model-half', 0.03],
  ['model-nothing', 0.01],
]

/** Rounds of tool calls that a question asks for. */
export type Rounds = readonly (readonly ToolName[])[]

/** A question that has its own name and says what the model does: `m12 [quick,gated|slow]`. */
export function questionOf(name: string, rounds: Rounds): string {
  return `${name} [${rounds.map((calls) => calls.join(',')).join('|')}]`
}

const atLength = 'at length'

/** A question whose answer takes half a minute. */
export function longQuestion(name: string): string {
  return `${name} ${atLength}`
}

/** The rounds that a question asks for; none where it is no such question. */
export function roundsOf(question: string): Rounds {
  const inside = /\[(.*)\]/.exec(question)?.[1] ?? ''
  if (inside === '') return []
  return inside.split('|').map((calls) => calls.split(',').filter((name): name is ToolName => name in toolKinds))
}

/** The request that an answer was made for, by its text or the arguments of its calls; null where it does not say. */
export function requestNamedBy(said: string): string | null {
  return /\breq_\d+/.exec(said)?.[0] ?? null
}

/** A model that does what the latest question says, and fails now and then. Each answer names its request. */
export class ChaosModel {
  /** Whether it fails now and then. */
  fails = true
  readonly injected = new Map<ModelFault, number>()
  readonly #seed: number

  constructor(seed: number) {
    this.#seed = seed
  }

  readonly reply = (request: LoggedRequest, index: number): Reply => {
    const random = randomOf(this.#seed, 100 + index)
    const fault = this.fails ? faultOf(random()) : null
    const asked = request.messages.findLastIndex(({ role }) => role === 'user')
    const question = String(request.messages[asked]?.content)
    const round = request.messages.slice(asked).filter((message) => (message.tool_calls ?? []).length > 0).length
    if (question.endsWith(atLength)) return text(`${request.id} ${'and so on '.repeat(60)}`, { chunkDelayMs: 170 })
    const calls = roundsOf(question)[round]
    const pace = { delayMs: 20 + random() * 130, chunkDelayMs: 5 + random() * 25, chunks: 3 }
    const answer =
      calls === undefined
        ? text(`${request.id} answers ${question.split(' ')[0]}`, pace)
        : toolCalls(
            calls.map((name) => ({ name, arguments: { of: request.id } })),
            pace,
          )
    if (fault === null) return answer
    this.injected.set(fault, (this.injected.get(fault) ?? 0) + 1)
    switch (fault) {
      case 'model-429':
        return httpError(429, 'too many requests', { 'retry-after-ms': '150' })
      case 'model-500':
        return httpError(500, 'the model has a bad day')
      case 'model-half':
        return cut({ after: answer })
      case 'model-nothing':
        return hang(random() < 0.5 ? {} : { after: '' })
      default:
        return fault satisfies never
    }
  }
}

function faultOf(random: number): ModelFault | null {
  let below = 0
  for (const [fault, share] of shares) {
    below += share
    if (random < below) return fault
  }
  return null
}
