import { type Context, ROOT_CONTEXT, type Tracer } from '@opentelemetry/api'
import { type Span, SpanKind, type Telemetry } from 'bullmq'
import { BullMQOTelSpan, BullMQOtel } from 'bullmq-otel'

/** What BullMQ writes to spans and may quote a chat: the text of an error that ended a turn. */
const quoting = /failed[._]reason|exception|stacktrace|message/i

/**
 * BullMQ's telemetry, as a queue and a worker take it: a span where a ring is added and one where its job is done, the
 * second a child of the first across processes. The context travels in the job's options, so the data of a job stays the
 * id of its chat. Left out is what BullMQ does for its own sake, and what could quote a chat.
 */
export function queueTelemetry(tracer: Tracer): Telemetry<Context> {
  const { contextManager } = new BullMQOtel()
  return {
    tracer: {
      startSpan: (name, options, context) =>
        options?.kind === SpanKind.PRODUCER || options?.kind === SpanKind.CONSUMER
          ? new ReticentSpan(tracer.startSpan(name, options, context))
          : unseen,
    },
    // Without a root, the checks that a worker repeats for ever would belong to the span that it started in.
    contextManager: Object.assign(contextManager, { root: () => ROOT_CONTEXT }),
  }
}

class ReticentSpan extends BullMQOTelSpan {
  override addEvent(name: string, attributes: Parameters<BullMQOTelSpan['addEvent']>[1] = {}): void {
    const kept = Object.entries(attributes).filter(([key]) => !quoting.test(key))
    super.addEvent(name, Object.fromEntries(kept))
  }

  /** The run's own span says what may be said of it. */
  override recordException(): void {}
}

const unseen: Span<Context> = {
  setSpanOnContext: (context) => context,
  setAttribute() {},
  setAttributes() {},
  addEvent() {},
  recordException() {},
  end() {},
}
