import type { Whereabouts } from '../../models/receipts.ts'
import type { Failure } from '../../models/rows.ts'

/** What became of a message that a chat accepted. It says so in every process, for as long as the chat is there. */
export type Receipt =
  | {
      /** The id that the message has in the queue. */
      readonly id: string
      /** It is in the queue: the run that comes, or that is on, takes it. */
      readonly status: 'waiting'
      /** When it was queued. */
      readonly queuedAt: Date
      /** True: it joins the running turn before its next model call. False: it starts the next turn. */
      readonly steer: boolean
    }
  | {
      /** The id that the message has in the queue. */
      readonly id: string
      /** It is still in the queue, but the turn before it was given up: nothing takes it until somebody tries again. */
      readonly status: 'failed'
      /** Why that turn was given up. */
      readonly reason: Failure
    }
  | {
      /** The id that the message had in the queue; that of the message itself where it never was in it. */
      readonly id: string
      /** It is part of the transcript; whether it is answered, `isComplete` says. */
      readonly status: 'delivered'
      /** The message of the transcript. It may have been removed since, by an edit of one before it. */
      readonly messageId: string
      /** When it became part of the transcript. */
      readonly at: Date
    }
  | {
      /** The id that the message had in the queue. */
      readonly id: string
      /** It was taken back in time. */
      readonly status: 'unqueued'
      /** When it was taken back. */
      readonly at: Date
    }

/** Null: the chat has accepted no such message. */
export function receiptOf(id: string, { failure, queued, settled, message }: Whereabouts): Receipt | null {
  if (queued !== null) {
    if (failure !== null) return { id, status: 'failed', reason: failure }
    return { id, status: 'waiting', queuedAt: queued.createdAt, steer: queued.steer }
  }
  if (settled !== null) {
    const { messageId, settledAt: at } = settled
    return messageId === null ? { id, status: 'unqueued', at } : { id, status: 'delivered', messageId, at }
  }
  return message === null ? null : { id, status: 'delivered', messageId: id, at: message.createdAt }
}
