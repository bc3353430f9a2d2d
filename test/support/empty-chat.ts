import type { ChatRow } from '../../models/rows.ts'

/** What the row of a new chat has beside what it was made with. */
export const emptyChat: Omit<
  ChatRow,
  'id' | 'agent' | 'model' | 'provider' | 'owner' | 'settings' | 'createdAt' | 'updatedAt'
> = {
  modelRowId: null,
  forkedFrom: null,
  forkedPosition: null,
  parentId: null,
  parentCallId: null,
  rootId: null,
  depth: 0,
  transferTo: null,
  inputs: null,
  nextPosition: 0,
  nextQueuePosition: 0,
  claimedBy: null,
  claimedUntil: null,
  claimToken: 0,
  wantedAt: null,
  wantedSeq: 0,
  wantedQueue: null,
  attempts: 0,
  putOff: 0,
  rounds: 0,
  failure: null,
  turn: 0,
  cancelTurn: null,
  cancelSeq: null,
  cancelledTurn: null,
  endedTurn: null,
  compactAt: null,
  compactSeq: 0,
  compactAttempts: 0,
  compactions: 0,
  parked: false,
}
