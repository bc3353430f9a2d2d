import pLimit from 'p-limit'
import type { Database } from '../../models/database.ts'
import { failedChats } from '../../models/overview.ts'
import type { Threadmill } from '../threadmill.ts'
import { chatIds } from './chat-ids.ts'
import type { Cli, CommonOptions } from './cli.ts'
import { type Complaint, complaintOf } from './complain.ts'
import { withDatabase, withMill } from './connect.ts'
import { exitCodes } from './exit-codes.ts'
import { progressOf } from './progress.ts'

/** The options of a command that does something to each of many chats. */
export interface EachChatOptions extends CommonOptions {
  readonly allFailed?: boolean
  readonly code?: string
}

/** What became of one chat, as --json shows it. */
export type ChatOutcome =
  | { readonly chatId: string; readonly done: string }
  | { readonly chatId: string; readonly error: Complaint }

/** How many chats are worked on at once, and how many ids are read at once. */
const atOnce = 8
const pageSize = 1_000

/**
 * Does the same to every chat that a command names, and says for each what became of it. One that fails keeps none of the
 * others back, and makes the exit code 1.
 * @param act returns what it did, in words.
 */
export async function eachChat(
  cli: Cli,
  options: EachChatOptions,
  named: readonly string[],
  act: (mill: Threadmill, chatId: string) => Promise<string>,
): Promise<void> {
  const settings = cli.settings(options)
  const ids = options.allFailed
    ? await withDatabase(settings, (db) => allFailed(db, options.code ?? null))
    : await chatIds(named, cli.io)
  if (ids.length === 0) {
    if (!options.json) cli.note('No chat has failed.')
    return
  }
  await withMill(cli, settings, (mill) => toEach(cli, options, ids, (chatId) => act(mill, chatId)))
}

async function toEach(
  cli: Cli,
  options: CommonOptions,
  ids: readonly string[],
  act: (chatId: string) => Promise<string>,
): Promise<void> {
  const progress = progressOf(cli.io.stderr, ids.length, 'chats')
  const limit = pLimit(atOnce)
  const outcomes = ids.map((chatId) => limit(() => outcomeOf(chatId, act).finally(() => progress.step())))
  try {
    for (const outcome of outcomes) tell(cli, options, await outcome)
  } finally {
    progress.stop()
  }
}

async function outcomeOf(chatId: string, act: (chatId: string) => Promise<string>): Promise<ChatOutcome> {
  try {
    return { chatId, done: await act(chatId) }
  } catch (error) {
    return { chatId, error: complaintOf(error) }
  }
}

function tell(cli: Cli, { json }: CommonOptions, outcome: ChatOutcome): void {
  const failed = 'error' in outcome
  if (failed) cli.exitCode = exitCodes.failed
  if (json) cli.json(outcome)
  else if (failed) cli.note(`${outcome.chatId}: ${inRed(cli, outcome.error.message)} (${outcome.error.code})`)
  else cli.line(`${outcome.chatId}: ${outcome.done}`)
}

const inRed = (cli: Cli, text: string) => cli.paint('red', text, cli.io.stderr)

/** All ids before anything is done: what is retried may fail again meanwhile. */
async function allFailed(db: Database, code: string | null): Promise<string[]> {
  const ids: string[] = []
  for (;;) {
    const page = await failedChats(db, { code, after: ids.at(-1) ?? '', limit: pageSize })
    ids.push(...page)
    if (page.length < pageSize) return ids
  }
}
