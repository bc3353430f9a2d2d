import type { Diagnosis } from '../../chat/diagnose.ts'

/** How the chat stands, as far as it matters to whoever types. */
export type Phase = 'busy' | 'parked' | 'rest'

export function phaseOf({ state }: Pick<Diagnosis, 'state'>): Phase {
  switch (state) {
    case 'idle':
    case 'failed':
      return 'rest'
    case 'parked':
      return 'parked'
    case 'running':
    case 'due':
    case 'wanted':
    case 'put off':
      return 'busy'
    default:
      return state satisfies never
  }
}
