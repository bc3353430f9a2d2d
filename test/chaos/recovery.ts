import type { Evidence } from './evidence.ts'

/** How long it took until somebody else had taken a chat whose holder had died or been stopped, in ms, the shortest first. */
export function recoveryTimes({ tally, takes }: Pick<Evidence, 'tally' | 'takes'>): number[] {
  const struck = [
    ...tally.deaths.map(({ at, held }) => ({ at, held })),
    ...tally.freezes.map(({ from, held }) => ({ at: from, held })),
  ]
  return struck
    .flatMap(({ at, held }) =>
      [...held].flatMap(([chatId, token]) => {
        const next = takes.find((take) => take.chatId === chatId && take.token > token)
        // One that was struck at the end of its run left nothing to be taken, until there was something new.
        return next === undefined || next.token !== token + 1 || next.at < at ? [] : [next.at - at]
      }),
    )
    .sort((one, other) => one - other)
}

/** The value below which this part of them is; null for none. */
export function percentile(sorted: readonly number[], part: number): number | null {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? null
}
