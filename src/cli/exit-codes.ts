/** What a command of the `threadmill` program, or the demo, tells the shell. Every code that there is stands here. */
export const exitCodes = {
  ok: 0,
  /** It was tried and did not work, for all chats named or for some. */
  failed: 1,
  /** Nothing was tried: the arguments, the settings or the app file are wrong, or the tables are not up to date. */
  usage: 2,
  /** The chat waits for a person to decide. */
  waiting: 3,
  /** Jobs are not taken: a worker is stuck and can't help itself, or no worker took what `threadmill health` put into a queue. */
  stuck: 4,
  hungUp: 129,
  interrupted: 130,
  terminated: 143,
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** The part of every command's help that explains the codes. */
export const exitCodesHelp =
  'Exit codes: 0 done; 1 failed; 2 wrong arguments or configuration; 3 waits for a person; 4 jobs are not taken; 129, 130, 143 ended by a signal.'
