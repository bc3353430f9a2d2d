import type { Tracer } from '@opentelemetry/api'
import type { Registry } from 'prom-client'
import { type Logger, requireLogger } from '../../config/logger.ts'
import { type Instruments, instruments, type Trace } from './instruments.ts'
import { logTo } from './log-line.ts'
import type { Metrics } from './metrics/metrics.ts'
import type { Observation } from './observation.ts'
import type { Tracing } from './tracing/spans.ts'

/** Who is told what this process does. All of it is off by default, and what is off is not even loaded. */
export interface ObservabilityOptions {
  /** Gets a line for what happens: pino, the console, or anything else with their four methods. Default: none. */
  readonly logger?: Logger | undefined
  /**
   * Told of everything that happens in this process, at once and in order. It must be quick; what it throws, and a promise
   * that it returns, is ignored.
   */
  readonly onObservation?: ((observation: Observation) => unknown) | undefined
  /** Counts for Prometheus: `true` keeps them in a registry of this connection's own, a `Registry` of prom-client is added to. Default: none. */
  readonly metrics?: boolean | Registry | undefined
  /** Spans for OpenTelemetry: `true` takes the SDK that the process has registered; else a tracer, or a provider of one. Default: none. */
  readonly tracing?: boolean | Exclude<Tracing, true> | undefined
  /**
   * Lets texts of messages, arguments and results of tools, and the words of any error, into observations, and so into log
   * lines and spans, each cut to 2000 characters. Default false: none of them leaves the chat.
   */
  readonly observeContent?: boolean | undefined
}

export interface Observability {
  readonly instruments: Instruments
  readonly metrics: Metrics | null
  readonly tracer: Tracer | null
}

/** @throws {ConfigurationError} for a logger that lacks a method, and when the registry has the metrics of another connection. */
export async function openObservability(options: ObservabilityOptions): Promise<Observability> {
  const { logger, onObservation, observeContent = false } = options
  const [metrics, traced] = await Promise.all([metricsOf(options.metrics), tracedBy(options.tracing, observeContent)])
  const listeners = [
    ...(logger === undefined ? [] : [logTo(requireLogger(logger))]),
    ...(metrics === null ? [] : [metrics.observe]),
    ...(onObservation === undefined ? [] : [onObservation]),
  ]
  return {
    instruments: instruments({ listeners, trace: traced?.trace, observeContent }),
    metrics,
    tracer: traced?.tracer ?? null,
  }
}

async function metricsOf(wanted: boolean | Registry | undefined): Promise<Metrics | null> {
  if (wanted === undefined || wanted === false) return null
  const { openMetrics } = await import('./metrics/metrics.ts')
  return openMetrics(wanted === true ? null : wanted)
}

async function tracedBy(
  wanted: ObservabilityOptions['tracing'],
  observeContent: boolean,
): Promise<{ readonly tracer: Tracer; readonly trace: Trace } | null> {
  if (wanted === undefined || wanted === false) return null
  const { traceBy, tracerOf } = await import('./tracing/spans.ts')
  const tracer = tracerOf(wanted)
  return { tracer, trace: traceBy(tracer, { observeContent }) }
}
