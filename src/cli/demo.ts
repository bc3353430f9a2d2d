import { ArgumentError, ThreadmillError } from '../index.ts'
import { demoAgent } from './demo/agent.ts'
import { Closers } from './demo/closers.ts'
import { converse } from './demo/conversation.ts'
import { Follower } from './demo/follow.ts'
import { exitCodes, runOnce } from './demo/once.ts'
import { type DemoOptions, readOptions } from './demo/options.ts'
import { startSession } from './demo/session.ts'
import { Interrupts } from './terminal/interrupts.ts'
import { Lines } from './terminal/lines.ts'
import { Screen } from './terminal/screen.ts'

// `npm run demo`. The conversation is written to stdout; what the demo runs on, and errors, to stderr.

const { stdout, stderr } = process

/** What is left open after everything was closed keeps the process no longer than this. */
const lingerMs = 2_000

async function main(options: DemoOptions): Promise<number> {
  const closers = new Closers()
  const interrupts = new Interrupts(process, (code) => process.exit(code))
  // Whoever read the conversation is gone: `npm run demo | head`.
  stdout.on('error', () => interrupts.leave(exitCodes.failed))
  const screen = new Screen(stdout)
  const note = (line: string): void => {
    screen.endLine()
    stderr.write(`${line}\n`)
  }
  try {
    return await run(options, { closers, interrupts, screen, note })
  } catch (error) {
    // Ctrl-C also ended children that were still being started: what they complain of is no news.
    if (interrupts.leaving.aborted) return interrupts.code
    note(describe(error))
    return exitCodes.failed
  } finally {
    await closers.close()
  }
}

interface Parts {
  readonly closers: Closers
  readonly interrupts: Interrupts
  readonly screen: Screen
  readonly note: (line: string) => void
}

async function run(options: DemoOptions, { closers, interrupts, screen, note }: Parts): Promise<number> {
  const session = await startSession(closers, note)
  if (interrupts.leaving.aborted) return interrupts.code
  const { chats } = session.mill
  const chat = options.chat === null ? await chats.create({ agent: demoAgent }) : await chats.find(options.chat)
  if (chat.agent !== demoAgent.name) {
    throw new ArgumentError(`Chat ${chat.id} is not one of a demo, so the agent here is not its own: name another.`)
  }
  note(`Chat: ${chat.id}.`)
  // Of a new chat everything is news.
  const events = chat.events(options.chat === null ? { after: '0' } : { history: 'none' })
  await closers.add(async () => events.return?.())
  await events.ready
  const { leaving } = interrupts
  const stage = {
    mill: session.mill,
    chat,
    screen,
    interrupts,
    note,
    follower: new Follower({ chat, session, screen, events, leaving }),
  }
  screen.skip(await chat.messages())
  if (options.once !== null || options.approve) return runOnce(stage, options)
  const lines = new Lines({ input: process.stdin, output: stdout, onInterrupt: () => interrupts.press() })
  await closers.add(async () => lines.close())
  return converse(stage, lines)
}

function describe(error: unknown): string {
  if (error instanceof ThreadmillError) return `${error.message} (${error.code})`
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

async function start(): Promise<void> {
  const options = readOptions(process.argv.slice(2), {
    out: (text) => stdout.write(text),
    err: (text) => stderr.write(text),
  })
  process.exitCode = typeof options === 'number' ? options : await main(options)
  setTimeout(() => process.exit(), lingerMs).unref()
}

void start()
