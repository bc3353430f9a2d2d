import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { Logger } from '../../config/logger.ts'
import { elapsedMs, type Moment, momentBefore } from './elapsed.ts'
import type { FromRenewal, RenewalSetup, ToRenewal } from './renewal-messages.ts'

/** A claim as the renewer keeps it. */
export interface KeptClaim {
  readonly claimId: string
  readonly chatId: string
  /** When the last good renewal, or the take, was begun. */
  last: Moment
  readonly calls: Set<string>
  onRenewed(): void
  onLost(): void
}

const heartbeatMs = 1000

/** Keeps this process's claims alive from a thread of its own, which is started with the first of them. */
export class Renewer {
  readonly #setup: RenewalSetup
  readonly #logger: Logger
  readonly #kept = new Map<string, KeptClaim>()
  #thread: Worker | null = null
  #up: Promise<void> = Promise.resolve()
  #heartbeat: NodeJS.Timeout | null = null
  #closing = false

  constructor(setup: RenewalSetup, logger: Logger) {
    this.#setup = setup
    this.#logger = logger
  }

  /**
   * Starts the thread if need be and resolves once it renews: a claim that is taken before could lapse meanwhile. Resolves
   * too when the thread can't be started; claims are lost in time then.
   */
  ready(): Promise<void> {
    if (!this.#closing) this.#thread ??= this.#start()
    return this.#up
  }

  keep(claim: KeptClaim): void {
    this.#kept.set(claim.claimId, claim)
    this.#say({ type: 'hold', claimId: claim.claimId, chatId: claim.chatId, elapsed: elapsedMs(claim.last) })
  }

  drop(claimId: string): void {
    if (this.#kept.delete(claimId)) this.#say({ type: 'drop', claimId })
  }

  keepCall(claim: KeptClaim, callId: string): () => void {
    claim.calls.add(callId)
    this.#say({ type: 'holdCall', claimId: claim.claimId, callId })
    return () => {
      claim.calls.delete(callId)
      this.#say({ type: 'dropCall', claimId: claim.claimId, callId })
    }
  }

  async close(): Promise<void> {
    this.#closing = true
    if (this.#heartbeat !== null) clearInterval(this.#heartbeat)
    const thread = this.#thread
    if (thread === null) return
    const ended = new Promise<void>((resolve) => thread.once('exit', () => resolve()))
    thread.postMessage({ type: 'close' } satisfies ToRenewal)
    await ended
  }

  #say(message: ToRenewal): void {
    if (this.#closing) return
    this.#thread ??= this.#start()
    this.#thread.postMessage(message)
  }

  #start(): Worker {
    const thread = new Worker(threadEntry(), { workerData: this.#setup, name: 'threadmill-renewal' })
    this.#up = new Promise((resolve) => {
      thread.once('message', () => resolve())
      thread.once('exit', () => resolve())
    })
    thread.on('message', (message: FromRenewal) => this.#hear(message))
    thread.on('error', (error) => this.#restart(error))
    thread.unref()
    this.#heartbeat ??= setInterval(() => this.#say({ type: 'heartbeat' }), heartbeatMs).unref()
    return thread
  }

  /** Claims go on from their last good renewal, so a thread that can't be brought back loses them in time. */
  #restart(error: unknown): void {
    this.#logger.error({ err: error }, 'The renewal thread died; starting another')
    this.#thread = null
    for (const claim of this.#kept.values()) {
      this.keep(claim)
      for (const callId of claim.calls) this.#say({ type: 'holdCall', claimId: claim.claimId, callId })
    }
  }

  #hear(message: FromRenewal): void {
    if (message.type === 'up') return
    const claim = this.#kept.get(message.claimId)
    if (claim === undefined) return
    if (message.type === 'renewed') {
      claim.last = momentBefore(message.elapsed)
      claim.onRenewed()
      return
    }
    this.#kept.delete(message.claimId)
    claim.onLost()
  }
}

/** The built thread, or, where the process runs from sources, a step that loads it by the loader that its parent has. */
function threadEntry(): URL {
  if (!import.meta.url.endsWith('.ts')) return new URL('./renewal-thread.js', import.meta.url)
  const source = new URL('./renewal-thread.ts', import.meta.url).href
  // Required, it resolves to its CommonJS half, which does not find its own hooks when it is imported.
  const loader = new URL('./index.mjs', pathToFileURL(createRequire(import.meta.url).resolve('tsx/esm/api'))).href
  const code = `import { register } from ${JSON.stringify(loader)}; register(); await import(${JSON.stringify(source)})`
  return new URL(`data:text/javascript,${encodeURIComponent(code)}`)
}
