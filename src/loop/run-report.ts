import type { ChatLook } from '../../models/transcript.ts'
import { type ErrorFacts, errorFacts } from '../observability/error-facts.ts'
import type { Observe, RunFacts, RunOutcome } from '../observability/observation.ts'
import type { LoopPorts, RunOrder } from './run-context.ts'

/** Tells how one run goes, from the take of its chat to its release. */
export class RunReport {
  moves = 0
  readonly #begun = performance.now()
  readonly #ports: Pick<LoopPorts, 'content'>
  readonly #order: RunOrder
  readonly #report: Observe
  #facts: RunFacts
  #agent: string | null = null

  constructor(ports: Pick<LoopPorts, 'content'>, order: RunOrder, report: Observe) {
    this.#ports = ports
    this.#order = order
    this.#report = report
    this.#facts = { chatId: order.chatId, turn: null, claimToken: null }
  }

  /** The chat was read for the first time since it was taken. */
  taken({ chat, dueForMs }: ChatLook): void {
    this.#agent = chat.agent
    this.#facts = { chatId: chat.id, turn: chat.turn, claimToken: chat.claimToken }
    const { by, verb } = this.#order
    // A summary has a wish of its own.
    const waitedMs = verb === 'compact' ? null : dueForMs
    this.#report({ type: 'run.taken', ...this.#facts, by, verb, agent: chat.agent, waitedMs })
  }

  ended(
    outcome: RunOutcome,
    more: { readonly turn?: number; readonly error?: unknown; readonly retryInMs?: number } = {},
  ): void {
    const error: ErrorFacts | null = more.error === undefined ? null : errorFacts(more.error, this.#ports.content)
    this.#report({
      type: 'run.ended',
      ...this.#facts,
      // Queued messages may have begun another turn on the way.
      turn: more.turn ?? this.#facts.turn,
      outcome,
      agent: this.#agent,
      moves: this.moves,
      durationMs: performance.now() - this.#begun,
      error,
      retryInMs: more.retryInMs ?? null,
    })
  }
}
