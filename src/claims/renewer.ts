import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { Observe } from '../observability/observation.ts'
import { elapsedMs, type Moment, moment, momentBefore } from './elapsed.ts'
import type { FromRenewal, RenewalSetup, ToRenewal } from './renewal-messages.ts'
import { openRenewal } from './shared-thread.ts'

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
/** How long the thread may hear late of what it need not renew any more, in ms: each message wakes it. */
const dropWithinMs = 50
/** How long the thread may be silent before it counts as hung, in ms. */
const silenceMs = 15_000

/** Keeps the claims of one connection alive from a thread of its own, which is asked for with the first of them. */
export class Renewer {
  readonly #setup: RenewalSetup
  readonly #observe: Observe
  readonly #kept = new Map<string, KeptClaim>()
  #port: MessagePort | null = null
  #dropped: ToRenewal[] = []
  #dropping: NodeJS.Timeout | null = null
  #up: Promise<void> = Promise.resolve()
  #isUp: () => void = () => {}
  #heartbeat: NodeJS.Timeout | null = null
  #closing = false
  /** When the thread was last heard of. */
  #heard = moment()

  constructor(setup: RenewalSetup, observe: Observe) {
    this.#setup = setup
    this.#observe = observe
  }

  /**
   * Asks for the thread if need be and resolves once it renews: a claim that is taken before could lapse meanwhile. Resolves
   * too when the thread can't be started; claims are lost in time then.
   */
  ready(): Promise<void> {
    if (!this.#closing) this.#port ??= this.#open()
    return this.#up
  }

  keep(claim: KeptClaim): void {
    this.#kept.set(claim.claimId, claim)
    this.#say({ type: 'hold', claimId: claim.claimId, chatId: claim.chatId, elapsed: elapsedMs(claim.last) })
  }

  drop(claimId: string): void {
    if (this.#kept.delete(claimId)) this.#sayLater({ type: 'drop', claimId })
  }

  keepCall(claim: KeptClaim, callId: string): () => void {
    claim.calls.add(callId)
    this.#say({ type: 'holdCall', claimId: claim.claimId, callId })
    return () => {
      claim.calls.delete(callId)
      this.#sayLater({ type: 'dropCall', claimId: claim.claimId, callId })
    }
  }

  /** Whether the thread answers; also true while there is none, for nothing has to be renewed then. */
  get alive(): boolean {
    if (this.#port === null) return true
    if (elapsedMs(this.#heard) >= silenceMs) this.catchUp()
    return elapsedMs(this.#heard) < silenceMs
  }

  /** Hears at once what the thread has said and the event loop has not come to: it may have been blocked meanwhile. */
  catchUp(): void {
    while (this.#port !== null) {
      const said = receiveMessageOnPort(this.#port)
      if (said === undefined) return
      this.#hear(said.message)
    }
  }

  async close(): Promise<void> {
    this.#closing = true
    if (this.#heartbeat !== null) clearInterval(this.#heartbeat)
    const port = this.#port
    if (port === null) return
    const ended = new Promise<void>((resolve) => port.once('close', () => resolve()))
    port.ref()
    this.#takeDropped()
    port.postMessage([{ type: 'close' }] satisfies ToRenewal[])
    await ended
  }

  #say(message: ToRenewal): void {
    if (this.#closing) return
    this.#port ??= this.#open()
    this.#port.postMessage([...this.#takeDropped(), message] satisfies ToRenewal[])
  }

  /** Goes along with the next message, or by itself. */
  #sayLater(message: ToRenewal): void {
    this.#dropped.push(message)
    this.#dropping ??= setTimeout(() => {
      const dropped = this.#takeDropped()
      if (!this.#closing) this.#port?.postMessage(dropped)
    }, dropWithinMs).unref()
  }

  #takeDropped(): ToRenewal[] {
    if (this.#dropping !== null) clearTimeout(this.#dropping)
    this.#dropping = null
    return this.#dropped.splice(0)
  }

  #open(): MessagePort {
    const port = openRenewal(this.#setup)
    this.#heard = moment()
    this.#up = new Promise((resolve) => {
      this.#isUp = resolve
      port.once('close', () => resolve())
    })
    port.on('message', (message: FromRenewal) => this.#hear(message))
    port.once('close', () => this.#reopen())
    port.unref()
    this.#heartbeat ??= setInterval(() => this.#say({ type: 'heartbeat' }), heartbeatMs).unref()
    return port
  }

  /** Claims go on from their last good renewal, so a thread that can't be brought back loses them in time. */
  #reopen(): void {
    if (this.#closing) return
    this.#observe({ type: 'renewal.restarted' })
    this.#port = null
    for (const claim of this.#kept.values()) {
      this.keep(claim)
      for (const callId of claim.calls) this.#say({ type: 'holdCall', claimId: claim.claimId, callId })
    }
  }

  #hear(message: FromRenewal): void {
    this.#heard = moment()
    if (message.type === 'up') this.#isUp()
    if (message.type === 'up' || message.type === 'beat') return
    const claim = this.#kept.get(message.claimId)
    if (claim === undefined) return
    if (message.type === 'renewed') {
      claim.last = momentBefore(message.elapsed)
      if (message.gap > 2 * this.#setup.renewMs) {
        this.#observe({ type: 'claim.renewed-late', chatId: claim.chatId, gapMs: message.gap })
      }
      claim.onRenewed()
      return
    }
    this.#kept.delete(message.claimId)
    this.#observe({ type: 'claim.lost', chatId: claim.chatId })
    claim.onLost()
  }
}
