import { setTimeout as wait } from 'node:timers/promises'
import { v7 as uuid } from 'uuid'
import type { ClockPort } from './ports.ts'

/** The process's clock. Ids are UUIDv7: they sort roughly by time, which suits indexes; nothing relies on it. */
export const realClock: ClockPort = {
  now: () => new Date(),
  random: () => Math.random(),
  wait: async (ms, signal) => {
    try {
      await wait(ms, undefined, { signal })
    } catch {
      throw signal.reason
    }
  },
  newId: () => uuid(),
  timers: {
    setTimeout: (callback, ms) => setTimeout(callback, ms),
    clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
  },
}
