import type { DatabaseTarget } from '../../config/urls.ts'
import type { RenewalTimes } from './renewal.ts'

/** What the renewal thread is started with. */
export interface RenewalSetup extends RenewalTimes {
  readonly database: DatabaseTarget
  readonly tablePrefix: string
  /** The thread stops renewing when the main thread has not been heard of for so long: it hangs for good. */
  readonly heartbeatLimitMs: number
}

export type ToRenewal =
  | { readonly type: 'hold'; readonly claimId: string; readonly chatId: string; readonly elapsed: number }
  | { readonly type: 'drop'; readonly claimId: string }
  | { readonly type: 'holdCall' | 'dropCall'; readonly claimId: string; readonly callId: string }
  | { readonly type: 'heartbeat' }
  | { readonly type: 'close' }

export type FromRenewal =
  /** The thread is up: what it is told to hold is renewed. */
  | { readonly type: 'up' }
  | { readonly type: 'renewed'; readonly claimId: string; readonly elapsed: number; readonly gap: number }
  /** Answers a heartbeat. */
  | { readonly type: 'beat' }
  | { readonly type: 'lost'; readonly claimId: string }
