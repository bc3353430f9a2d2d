import { damageOf } from '../../models/damage.ts'
import type { ChatRow, TranscriptMessage } from '../../models/rows.ts'
import { DamagedChatError } from '../errors.ts'
import { openCalls } from './transcript.ts'

/** A column of a chat's rows that holds what can't be read. */
export interface Damage {
  /** Which one, in words. */
  readonly what: string
  /** Whether the turn would be another one without it, so that nobody may run it. */
  readonly stops: boolean
}

const neededOfChat = ['settings', 'inputs', 'transferTo']
const neededOfOpenCall = ['editedArguments', 'mcpState']

/** Everything that could not be read of a chat and of the messages at hand. (E106) */
export function damages(chat: object, transcript: readonly TranscriptMessage[]): Damage[] {
  const open = new Set(openCalls(transcript).filter(({ approval }) => approval !== 'denied'))
  return [
    ...damageOf(chat).map((key) => ({ what: `${key} of the chat`, stops: neededOfChat.includes(key) })),
    ...transcript.flatMap((message) => [
      ...damageOf(message).map((key) => ({ what: `${key} of message ${message.id}`, stops: false })),
      ...message.toolCalls.flatMap((call) =>
        damageOf(call).map((key) => ({
          what: `${key} of call ${call.toolCallId} (row ${call.id})`,
          stops: open.has(call) && neededOfOpenCall.includes(key),
        })),
      ),
    ]),
  ]
}

/**
 * A chat whose rows can't be read is not run: without its settings or what a call waits for the turn would be another one.
 * @throws {DamagedChatError} that names what can't be read.
 */
export function requireSound(chat: ChatRow, transcript: readonly TranscriptMessage[]): void {
  const stopping = damages(chat, transcript).filter(({ stops }) => stops)
  if (stopping.length === 0) return
  throw new DamagedChatError(
    `Chat ${chat.id} can't be run, since its rows hold what can't be read: ${wordsOf(stopping)}. ${mending}`,
    { chatId: chat.id },
  )
}

/** What to do about it. */
export const mending = 'Put that right in the database; settings and inputs can be set anew, and a call can be denied.'

/** A few of them, and how many more there are. */
export function wordsOf(list: readonly Damage[]): string {
  const named = list.slice(0, 5).map(({ what }) => what)
  return list.length > named.length ? `${named.join(', ')} and ${list.length - named.length} more` : named.join(', ')
}
