import { setTimeout as pause } from 'node:timers/promises'
import type { IQueueBackend } from 'bullmq'
import type { FetchPhase } from './consumption.ts'

/** How long a worker leaves a Redis alone that refused to give it a job, in ms: BullMQ asks again at once. */
const refusedPauseMs = 1_000

/** Listens to how a worker of BullMQ fetches jobs; it asks Redis nothing by itself. */
export class Fetching {
  #waits = 0
  #waitsAtMostMs = 0
  #asks = 0
  #isLimited = false
  #isAnswered = false
  #isRefused = false
  #happened = 0

  constructor(backend: Pick<IQueueBackend, 'waitForJob' | 'moveToActive'>, stopped: AbortSignal) {
    const { waitForJob, moveToActive } = backend
    backend.waitForJob = async (seconds) => {
      this.#waits++
      this.#waitsAtMostMs = seconds * 1_000
      this.#isLimited = false
      this.happens()
      try {
        return await waitForJob.call(backend, seconds)
      } finally {
        this.#waits--
        this.happens()
      }
    }
    backend.moveToActive = async (token, name) => {
      this.#asks++
      this.#isLimited = false
      this.happens()
      try {
        const answer = await moveToActive.call(backend, token, name)
        this.#isLimited = Number(answer[2] ?? 0) > 0
        this.#isAnswered = true
        this.#isRefused = false
        return answer
      } catch (error) {
        this.#isRefused = true
        this.happens()
        await pause(refusedPauseMs, undefined, { signal: stopped }).catch(() => {})
        throw error
      } finally {
        this.#asks--
        this.happens()
      }
    }
  }

  /** Counts what happened: fetches and, told from outside, jobs. */
  get happened(): number {
    return this.#happened
  }

  get phase(): FetchPhase {
    if (this.#asks > 0) return { kind: 'asking' }
    if (this.#waits > 0) return { kind: 'waiting', atMostMs: this.#waitsAtMostMs }
    return { kind: this.#isLimited ? 'limited' : 'between' }
  }

  /** Whether Redis has answered a request for a job, with or without one. */
  get isAnswered(): boolean {
    return this.#isAnswered
  }

  /** Whether the last request was answered by an error. */
  get isRefused(): boolean {
    return this.#isRefused
  }

  happens(): void {
    this.#happened++
  }
}
