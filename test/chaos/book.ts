// What people did in a chaos run, and what they were told.

/** Whether whoever asked for something heard that it was done, that it was not, or neither. */
export type Heard = 'accepted' | 'refused' | 'unknown'

/** A message that somebody wrote. */
export interface Said {
  readonly chatId: string
  /** No other message has it. */
  readonly text: string
  /** How it was to wait; null = not asked to. */
  readonly steer: boolean | null
  /** When it was begun and when its writer heard of it, by one count for everything. */
  readonly begun: number
  readonly ended: number
  readonly heard: Heard
  /** Whether it was taken back, as far as its writer knows. */
  unqueued: 'no' | 'yes' | 'perhaps'
}

/** A decision about a call. */
export interface Decision {
  readonly chatId: string
  readonly callId: string
  readonly approved: boolean
  /** When whoever decided heard of it, in ms since the epoch. */
  readonly at: number
  readonly heard: Heard
}

export interface Cancel {
  readonly chatId: string
  readonly heard: Heard
}

/** Everything that people did. */
export class Book {
  readonly said: Said[] = []
  readonly decisions: Decision[] = []
  readonly cancels: Cancel[] = []
  readonly chatIds: string[] = []
}
