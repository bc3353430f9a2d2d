/** What a run has to come to, for each of its minutes. */
export const leastPerMinute = {
  turns: 2_000 / 15,
  kill: 200 / 15,
  freeze: 60 / 15,
  'restart-redis': 10 / 15,
  'restart-database': 10 / 15,
  approvals: 200 / 15,
  cancels: 200 / 15,
} as const

export type Required = keyof typeof leastPerMinute

/** Of these there are none where the database is a file. */
const ofServers: readonly Required[] = ['restart-database']

/** What there was too little of, a line each; a run whose faults came to too little proves too little. */
export function tooFew(counts: Readonly<Record<Required, number>>, minutes: number, hasServer: boolean): string[] {
  return (Object.keys(leastPerMinute) as Required[])
    .filter((what) => hasServer || !ofServers.includes(what))
    .flatMap((what) => {
      const least = Math.floor(leastPerMinute[what] * minutes)
      return counts[what] >= least ? [] : [`${what}: ${counts[what]}, and there should be ${least} at least`]
    })
}
