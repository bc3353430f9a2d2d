import { setTimeout as wait } from 'node:timers/promises'
import type { Fleet } from './fleet.ts'
import type { Fault, Server } from './plan.ts'
import type { TcpProxy } from './proxy.ts'
import type { Strikes } from './strikes.ts'
import type { Tally } from './tally.ts'

/** A server that faults are about. */
export interface Victim {
  /** What stands between it and everybody; null = nothing does. */
  readonly proxy: TcpProxy | null
  kill(): Promise<void>
  start(): Promise<void>
}

export interface RedisVictim extends Victim {
  /** Sends a command, past the proxy. */
  command(name: string, ...values: string[]): Promise<unknown>
}

export interface DatabaseVictim extends Victim {
  /** Ends some of the connections of workers and people. */
  killConnections(): Promise<void>
  /** Runs into a transaction of a worker; resolves with how many deadlocks there were. */
  deadlock(): Promise<number>
}

export interface InjectOptions {
  readonly tally: Tally
  readonly fleet: Fleet
  readonly strikes: Strikes
  readonly redis: RedisVictim
  /** Null: a file. */
  readonly database: DatabaseVictim | null
}

/** Makes what goes wrong go wrong. */
export class Injector {
  readonly #options: InjectOptions
  /** What is being done to each server: one thing at a time. */
  readonly #busy: Record<Server, Promise<unknown>> = { redis: Promise.resolve(), database: Promise.resolve() }
  readonly #under: Promise<void>[] = []

  constructor(options: InjectOptions) {
    this.#options = options
  }

  /** Makes all of them, each at its time, and resolves when the last one is over. */
  async play(faults: readonly Fault[], signal: AbortSignal): Promise<void> {
    const begun = performance.now()
    for (const fault of faults) {
      await wait(Math.max(0, fault.at - (performance.now() - begun)), undefined, { signal })
      const made = this.#make(fault)
      // Thrown at the end.
      made.catch(() => {})
      this.#under.push(made)
    }
    await Promise.all(this.#under)
  }

  async #make(fault: Fault): Promise<void> {
    const { tally, fleet, strikes, redis, database } = this.#options
    switch (fault.kind) {
      case 'kill':
      case 'freeze':
      case 'hold':
        return strikes.strike(fault)
      case 'restart':
        return this.#upon(fault, async (victim) => {
          await victim.kill()
          await wait(fault.downMs)
          await victim.start()
        })
      case 'refuse':
      case 'cut':
        return this.#through(fault, () => wait(fault.ms))
      case 'slow':
        return this.#through(fault, () => wait(fault.ms))
      case 'flush':
        return this.#after('redis', async () => {
          await redis.command('FLUSHALL')
          tally.count('flush')
        })
      case 'pause':
        return this.#after('redis', async () => {
          await redis.command('CLIENT', 'PAUSE', String(fault.ms), 'ALL')
          tally.count('pause')
          await wait(fault.ms)
        })
      case 'kill-connections':
        return this.#after('database', async () => {
          if (database === null) return
          await tally.outage(async () => {
            await database.killConnections()
            // A connection that is dead is noticed by the next who uses it.
            await wait(500)
          })
          tally.count('kill-connections')
        })
      case 'deadlock':
        return this.#after('database', async () => {
          // Renewals of the chat wait for the rows, too.
          const met = await tally.outage(async () => (await database?.deadlock()) ?? 0)
          for (let left = met; left > 0; left--) tally.count('deadlock')
        })
      case 'full-disk':
        return tally.outage(async () => {
          const full = [...fleet.working]
          for (const worker of full) worker.order({ kind: 'disk', isFull: true })
          await wait(fault.ms)
          for (const worker of full) worker.order({ kind: 'disk', isFull: false })
          tally.count('full-disk')
        })
      default:
        return fault satisfies never
    }
  }

  /** Has the network before a server be so for as long as `work` takes. */
  #through(fault: Extract<Fault, { kind: 'refuse' | 'cut' | 'slow' }>, work: () => Promise<unknown>): Promise<void> {
    return this.#upon(fault, async ({ proxy }) => {
      const passage = fault.kind === 'slow' ? ({ kind: 'slow', delayMs: fault.delayMs } as const) : { kind: fault.kind }
      await proxy?.set(passage)
      await work()
      await proxy?.set({ kind: 'pass' })
    })
  }

  /** Does something to a server that makes it unreachable, or nearly so, for a while. */
  async #upon(
    { kind, server }: Extract<Fault, { server: Server }>,
    work: (victim: Victim) => Promise<void>,
  ): Promise<void> {
    const { redis, database, tally } = this.#options
    const victim = server === 'redis' ? redis : database
    if (victim === null) return
    await this.#after(server, () => (server === 'database' ? tally.outage(() => work(victim)) : work(victim)))
    tally.count(`${kind}-${server}`)
  }

  #after(server: Server, work: () => Promise<void>): Promise<void> {
    const done = this.#busy[server].then(work)
    this.#busy[server] = done.catch(() => {})
    return done
  }
}
