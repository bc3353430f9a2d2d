import {
  type Attributes,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  type TracerProvider,
  trace,
} from '@opentelemetry/api'
import { type ErrorFacts, errorFacts } from '../error-facts.ts'
import type { Trace } from '../instruments.ts'
import type { Observation } from '../observation.ts'
import { beginning, inputMessages, ofModelEnded, ofRunEnded, ofRunTaken, ofToolEnded } from './attributes.ts'

/** A tracer of OpenTelemetry, or what makes one. `true`: the tracer of the SDK that the process has registered. */
export type Tracing = true | Tracer | TracerProvider

export function tracerOf(tracing: Tracing): Tracer {
  if (tracing === true) return trace.getTracer('threadmill')
  return 'getTracer' in tracing ? tracing.getTracer('threadmill') : tracing
}

/** Runs steps inside spans. Texts of messages, arguments and results are attributes only with `observeContent`. */
export function traceBy(tracer: Tracer, { observeContent }: { readonly observeContent: boolean }): Trace {
  return (step, work) => {
    const { name, attributes } = beginning(step)
    const content: Attributes =
      observeContent && step.kind === 'model' ? { 'gen_ai.input.messages': inputMessages(step.messages) } : {}
    const kind = step.kind === 'model' ? SpanKind.CLIENT : SpanKind.INTERNAL
    return tracer.startActiveSpan(name, { kind, attributes: { ...attributes, ...content } }, async (span) => {
      let noted = false
      try {
        return await work((observation) => {
          noted = note(span, observation) || noted
        })
      } catch (error) {
        // What ended reported its error itself; and not every throw out of a step is one.
        if (!noted) failed(span, errorFacts(error))
        throw error
      } finally {
        span.end()
      }
    })
  }
}

/** Returns whether the observation was the end of the step. */
function note(span: Span, observation: Observation): boolean {
  switch (observation.type) {
    case 'run.taken':
      span.setAttributes(ofRunTaken(observation))
      if (observation.agent !== null) span.updateName(`invoke_agent ${observation.agent}`)
      return false
    case 'run.ended':
      span.setAttributes(ofRunEnded(observation))
      if (observation.outcome === 'failed' || observation.outcome === 'retry') failed(span, observation.error)
      return true
    case 'model.ended':
      span.setAttributes(ofModelEnded(observation))
      if (observation.status === 'failed') failed(span, observation.error)
      return true
    case 'tool.ended':
      span.setAttributes(ofToolEnded(observation))
      // A result that reports an error, and a call that was cut short, did not do what was asked.
      if (observation.outcome !== 'succeeded') failed(span, observation.error, observation.outcome)
      return true
    default:
      return false
  }
}

function failed(span: Span, error: ErrorFacts | null, otherwise = '_OTHER'): void {
  span.setAttribute('error.type', error?.code ?? otherwise)
  const message = error?.message ?? null
  span.setStatus({ code: SpanStatusCode.ERROR, ...(message === null ? {} : { message }) })
}
