import type { Gate, Passage, Reply } from './reply.ts'
import type { LoggedRequest } from './request-log.ts'

interface Deferred<T> {
  readonly promise: Promise<T>
  readonly resolve: (value: T) => void
}

function defer<T>(): Deferred<T> {
  let resolve: (value: T) => void = () => {}
  const promise = new Promise<T>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}

/** Leave for one chunk; resolved when the chunk was sent. */
type Ticket = Deferred<void>

/** What the steps of the test and the requests at the gate hand to each other, first come, first served. */
class Turnstile {
  readonly reached = defer<LoggedRequest>()
  #open = false
  #inside = 0
  #entered = false
  #tickets: Ticket[] = []
  #waiting: ((ticket: Ticket | undefined) => void)[] = []

  release(): void {
    this.#open = true
    for (const go of this.#waiting.splice(0)) go(undefined)
  }

  step(): Promise<void> {
    const ticket = defer<void>()
    const go = this.#waiting.shift()
    if (go !== undefined) go(ticket)
    else if (this.#open || (this.#entered && this.#inside === 0)) ticket.resolve()
    else this.#tickets.push(ticket)
    return ticket.promise
  }

  enter(request: LoggedRequest): Passage {
    this.#inside++
    this.#entered = true
    this.reached.resolve(request)
    let held: Ticket | undefined
    let wait: ((ticket: Ticket | undefined) => void) | undefined
    const passed = (): void => {
      held?.resolve()
      held = undefined
    }
    return {
      pass: async () => {
        held = this.#tickets.shift()
        if (held !== undefined || this.#open) return
        const ticket = defer<Ticket | undefined>()
        wait = ticket.resolve
        this.#waiting.push(wait)
        held = await ticket.promise
      },
      passed,
      leave: () => {
        passed()
        this.#waiting = this.#waiting.filter((go) => go !== wait)
        if (--this.#inside === 0) for (const ticket of this.#tickets.splice(0)) ticket.resolve()
      },
    }
  }
}

/**
 * Holds a reply back until the test lets it go, as a whole by `release()` or chunk by chunk by `step()`, so that a
 * test never sleeps. The held reply's own delays count from the moment at which it is let go.
 */
export function gate(reply: Reply): Gate {
  const turnstile = new Turnstile()
  return {
    kind: 'gate',
    reply,
    reached: turnstile.reached.promise,
    release: () => turnstile.release(),
    step: () => turnstile.step(),
    enter: (request) => turnstile.enter(request),
  }
}
