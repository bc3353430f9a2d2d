/** What became of a message that left the queue: it is in the transcript, or was taken back. */
export type ReceiptStatus = 'delivered' | 'unqueued'

/** One row of `receipts`: a message that left the queue. Written in the transaction that took it out, and never changed. */
export interface ReceiptRow {
  /** The id that the message had in the queue. */
  id: string
  /** The chat that it waited for. */
  chatId: string
  /** What became of it. */
  status: ReceiptStatus
  /** The message of the transcript that it became, which an edit may have removed since; null where it was taken back. */
  messageId: string | null
  /** When it was queued. */
  queuedAt: Date
  /** When it left the queue. */
  settledAt: Date
}
