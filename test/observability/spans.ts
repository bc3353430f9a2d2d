import { AsyncLocalStorage } from 'node:async_hooks'
import { type Context, type ContextManager, context, ROOT_CONTEXT } from '@opentelemetry/api'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'

/** What an SDK registers, so that a span is the active one in what it encloses. */
class ContextStorage implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>()
  active(): Context {
    return this.#storage.getStore() ?? ROOT_CONTEXT
  }
  with<Args extends unknown[], Fn extends (...args: Args) => ReturnType<Fn>>(
    active: Context,
    work: Fn,
    self?: ThisParameterType<Fn>,
    ...args: Args
  ): ReturnType<Fn> {
    return this.#storage.run(active, () => work.apply(self, args))
  }
  bind<T>(_active: Context, target: T): T {
    return target
  }
  enable(): this {
    return this
  }
  disable(): this {
    return this
  }
}

/** Collects the spans of the tests of the suite that calls it. */
export function useSpans() {
  const exporter = new InMemorySpanExporter()
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  before(() => context.setGlobalContextManager(new ContextStorage()))
  beforeEach(() => exporter.reset())
  after(async () => {
    context.disable()
    await provider.shutdown()
  })
  const all = () => exporter.getFinishedSpans()
  const named = (name: string) => all().filter((span) => span.name === name)
  return {
    provider,
    all,
    named,
    /** The only span of a name. */
    one(name: string): ReadableSpan {
      const [span, ...more] = named(name)
      if (span === undefined || more.length > 0) throw new Error(`There are ${named(name).length} spans ${name}`)
      return span
    },
    /** The names from a span up to the root of its trace. */
    path(span: ReadableSpan): string[] {
      const parent = all().find((one) => one.spanContext().spanId === span.parentSpanContext?.spanId)
      return [span.name, ...(parent === undefined ? [] : this.path(parent))]
    },
    /** Everything that the spans say. */
    text: () =>
      JSON.stringify(all().map(({ name, attributes, events, status }) => ({ name, attributes, events, status }))),
  }
}
