import { AssertionError } from 'node:assert'
import { type CrashOutcome, describePoint } from './report.ts'

/**
 * A crash that a chat did not come through well: the first place, by the order of the writes, whose outcome has problems. An
 * `AssertionError` of Node, so that every test framework shows it as a failed assertion. (E113)
 */
export class CrashPointError extends AssertionError {
  /** What became of the chat; its `point` says where the process died. */
  readonly outcome: CrashOutcome

  constructor(outcome: CrashOutcome) {
    super({ message: messageOf(outcome) })
    this.name = 'CrashPointError'
    this.outcome = outcome
  }
}

function messageOf(outcome: CrashOutcome): string {
  const { point, problems, transcript, executions } = outcome
  const where = point === null ? 'Without any crash' : `A worker died ${describePoint(point)}`
  const ran = executions.map(({ tool, key, process, returned }) => {
    return `  ${tool} in the ${process === 'killed' ? 'process that died' : 'next process'}, key ${key}${returned ? '' : ', cut off'}`
  })
  return [
    `${where}, and the chat ended ${outcome.end}:`,
    ...problems.map((problem) => `- ${problem}`),
    'Transcript:',
    ...transcript.map((line) => `  ${line}`),
    ran.length === 0 ? 'No tool was executed.' : 'Executions:',
    ...ran,
  ].join('\n')
}
