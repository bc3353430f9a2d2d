import { ChatJob } from './job.ts'

/** Drives a chat's turn to its answer, or to where it must wait. */
export class CompleteJob extends ChatJob {
  readonly queue = 'complete'
}
