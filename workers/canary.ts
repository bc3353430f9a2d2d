import type { Job } from 'bullmq'
import type { RingData, RingName } from './bell.ts'
import type { JobOutcome } from './job.ts'

/** The name of a job that is for no chat: whichever worker takes it has shown that it takes jobs. (E136) */
export const canaryName: RingName = 'canary'

export function isCanary(job: Pick<Job<RingData>, 'name'>): boolean {
  return job.name === canaryName
}

/** No row is looked at, nothing is observed. */
export async function answerCanary(): Promise<JobOutcome> {
  return 'done'
}
