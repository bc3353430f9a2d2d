import { ChatJob } from './job.ts'

/** Runs the tool rounds of agents whose tools have workers of their own, and gives the turn back. */
export class RunToolsJob extends ChatJob {
  readonly queue = 'runTools'
}
