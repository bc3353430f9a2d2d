import type { Bell } from '../../models/rows.ts'
import type { RequestMessage } from '../providers/provider.ts'
import type { Observation, Observe } from './observation.ts'

/** Something that takes time and has a beginning and an end: a span, where somebody traces. */
export type Step =
  | { readonly kind: 'run'; readonly chatId: string; readonly verb: string; readonly by: 'caller' | Bell }
  | {
      readonly kind: 'model'
      readonly chatId: string
      readonly provider: string
      readonly model: string
      readonly streaming: boolean
      readonly temperature: number | null
      readonly maxOutputTokens: number | null
      readonly messages: readonly RequestMessage[]
    }
  | { readonly kind: 'tool'; readonly chatId: string; readonly tool: string; readonly toolCallId: string }

/** How the loop tells what it does. Nothing here throws, waits or changes what is done. */
export interface Instruments {
  readonly observe: Observe
  /**
   * Does the work of a step; what it reports is observed, and written to the step's span as well. The step's span is the
   * active one while the work goes on, so that spans of the application stand below it.
   */
  within<T>(step: Step, work: (report: Observe) => Promise<T>): Promise<T>
  /** A text as it may be observed: cut, or null unless content was asked for. */
  readonly content: (text: string | (() => string) | null) => string | null
}

/** Runs the work of a step inside a span. */
export type Trace = <T>(step: Step, work: (note: Observe) => Promise<T>) => Promise<T>

/** Most characters of a text that is observed as content. */
export const contentLimit = 2_000

export interface InstrumentOptions {
  readonly listeners: readonly ((observation: Observation) => unknown)[]
  /** Default: no spans. */
  readonly trace?: Trace | undefined
  /** Default false. */
  readonly observeContent?: boolean | undefined
}

export function instruments({ listeners, trace, observeContent = false }: InstrumentOptions): Instruments {
  const observe = toAll(listeners)
  return {
    observe,
    within:
      trace === undefined
        ? (_step, work) => work(observe)
        : (step, work) =>
            trace(step, (note) =>
              work((observation) => {
                note(observation)
                observe(observation)
              }),
            ),
    content: observeContent ? cut : () => null,
  }
}

function cut(text: string | (() => string) | null): string | null {
  return (typeof text === 'function' ? text() : text)?.slice(0, contentLimit) ?? null
}

/** What a listener throws, or rejects with, is its own: it must not be able to end a run. */
function toAll(listeners: InstrumentOptions['listeners']): Observe {
  if (listeners.length === 0) return () => {}
  return (observation) => {
    for (const listener of listeners) {
      try {
        const told = listener(observation)
        if (told instanceof Promise) told.catch(() => {})
      } catch {
        // The next one is told all the same.
      }
    }
  }
}
