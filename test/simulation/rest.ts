import type { ChatRow, MessageRow, TranscriptMessage } from '../../models/rows.ts'
import { openRequests, openSubChat } from '../../models/waiting.ts'
import { hasPendingWork, openCalls } from '../../src/loop/transcript.ts'
import type { Application } from './app.ts'
import type { World } from './world.ts'

// What has to be true of a world in which nothing moves any more.

/** Whether nobody runs a chat, nobody wants one, and nobody is about to. */
export function isAtRest(world: World, app: Application): boolean {
  if (app.pending > 0) return false
  for (const process of world.processes) if (!process.isDead && process.runs > 0) return false
  const now = world.scheduler.now
  for (const { claimedUntil, wantedAt } of world.tables.chats.values()) {
    if (wantedAt !== null || (claimedUntil !== null && claimedUntil.getTime() > now)) return false
  }
  return true
}

/** What is wrong with a world at rest; null = nothing. */
export function faultAtRest(world: World, app: Application): string | null {
  for (const chatId of world.everyChat) {
    const fault = unfinished(world, app, chatId) ?? misdelivered(world, app, chatId) ?? torn(world, chatId)
    if (fault !== null) return `${chatId} is at rest, and ${fault}`
  }
  return null
}

/** Why a chat should not be at rest. */
function unfinished({ tables }: World, app: Application, chatId: string): string | null {
  const chat = tables.chat(chatId)
  if (chat.cancelTurn === null && app.left.has(chatId)) return null
  const transcript = tables.transcript(chatId, null)
  const left = leftToDo({ chat, transcript, queued: tables.queue(chatId).length })
  if (left !== null || chat.failure !== null) return left
  const below = openCalls(transcript).flatMap((call) => openSubChat(call) ?? [])
  return below.some(({ id }) => hasEnded(tables.chat(id))) ? 'a call waits for a sub-chat that has ended' : null
}

/** A chat that nobody runs. */
export interface Resting {
  readonly chat: Pick<ChatRow, 'cancelTurn' | 'cancelledTurn' | 'turn' | 'failure' | 'parked'>
  readonly transcript: readonly TranscriptMessage[]
  /** How many messages wait in its queue. */
  readonly queued: number
}

/** What is left to do in a chat, which should not be at rest then; null = nothing. */
export function leftToDo({ chat, transcript, queued }: Resting): string | null {
  if (chat.cancelTurn !== null) return 'its cancel was not met'
  if (chat.failure !== null) return null
  const open = openCalls(transcript)
  if (queued > 0 && open.length === 0) return 'messages wait in its queue'
  const waits = open.filter(
    (call) => call.approval === 'pending' || openRequests(call).length > 0 || openSubChat(call) !== null,
  )
  if (waits.length < open.length) return 'a call could go on'
  if (open.length > 0) return chat.parked ? null : 'calls wait, and it is not parked'
  return hasPendingWork(transcript) && chat.cancelledTurn !== chat.turn ? 'an answer is owed' : null
}

function hasEnded({ turn, endedTurn, failure }: ChatRow): boolean {
  return turn === endedTurn || failure !== null
}

/** Whether what users said is there, each once, in the order in which it was accepted. */
function misdelivered({ tables }: World, app: Application, chatId: string): string | null {
  // What another agent was asked is what the call said.
  if (tables.chat(chatId).parentId !== null) return null
  const stored = tables.messages(chatId).filter(({ role }) => role === 'user')
  const waiting = tables.queue(chatId).map(({ content }) => content)
  const there = [...stored.map(({ content }) => content), ...waiting]
  const said = app.said.filter((one) => one.chatId === chatId)
  for (const { content } of said) {
    const times = there.filter((one) => one === content).length
    if (times !== 1) return `${content} is there ${times} times`
  }
  if (there.length !== said.length) return 'holds what nobody said'
  for (const steer of [true, false]) {
    const queued = said.filter((one) => one.steer === steer).map(({ content }) => content)
    const order = there.filter((content) => queued.includes(content ?? ''))
    if (order.join() !== queued.join()) return `queued messages came as ${order}, and were accepted as ${queued}`
  }
  return null
}

/** Whether positions, calls and results fit together. */
function torn({ tables }: World, chatId: string): string | null {
  const messages = tables.messages(chatId)
  if (messages.some(({ position }, at) => position !== at)) return 'has a gap in its positions'
  const results = messages.filter(({ role }) => role === 'tool').map(({ id }) => id)
  const answered = tables.toolCalls(chatId).flatMap(({ resultId }) => resultId ?? [])
  if (answered.toSorted().join() !== results.toSorted().join()) return 'calls and results are not one to one'
  const answers = new Set(messages.filter(isAnswer).map(({ id }) => id))
  const lost = tables.usages.filter(
    (usage) => usage.chatId === chatId && usage.messageId !== null && !answers.has(usage.messageId),
  )
  return lost.length > 0 ? 'an entry of usage names no message' : null
}

function isAnswer({ role }: MessageRow): boolean {
  return role === 'assistant'
}

/** What is left when everything was decided, answered and tried again; null = nothing. */
export function faultAtEnd(world: World): string | null {
  for (const chatId of world.everyChat) {
    const chat = world.tables.chat(chatId)
    const transcript = world.tables.transcript(chatId, null)
    if (world.tables.queue(chatId).length > 0) return `${chatId} has messages in its queue for ever`
    if (hasPendingWork(transcript) && chat.cancelledTurn !== chat.turn) return `${chatId} is never answered`
    if (openCalls(transcript).length > 0) return `${chatId} has calls that never end`
  }
  const open = world.tables.usages.filter(({ status }) => status === 'pending')
  return open.length > 0 ? `${open.length} entries of usage are open` : null
}

/** Decides, answers and tries again whatever waits for people. Returns whether there was anything. */
export function settle(world: World, app: Application): boolean {
  // What was left as it was on purpose is taken up now.
  app.left.clear()
  return world.everyChat.map((chatId) => settleChat(world, app, chatId)).includes(true)
}

function settleChat(world: World, app: Application, chatId: string): boolean {
  const chat = world.tables.chat(chatId)
  const transcript = world.tables.transcript(chatId, null)
  const open = openCalls(transcript)
  const pick = open.findIndex((call) => call.approval === 'pending')
  if (pick >= 0) {
    void app.decide(chatId, { pick, approval: 'approved', lost: null })
    return true
  }
  if (open.some((call) => openRequests(call).length > 0)) {
    void app.answer(chatId, { pick: 0, declines: false, lost: null })
    return true
  }
  const owed = hasPendingWork(transcript) && chat.cancelledTurn !== chat.turn
  const waits = chat.failure !== null || owed || world.tables.queue(chatId).length > 0
  if (!waits && !isToBeTaken(world, app, chatId)) return false
  void app.want(chatId)
  return true
}

/**
 * Whether a chat is to be taken once more for its usage: a process that stood still past its claim can open an entry, and die, after
 * the chat came to rest; the next take closes it.
 */
function isToBeTaken(world: World, { takenOnceMore }: Application, chatId: string): boolean {
  if (takenOnceMore.has(chatId)) return false
  takenOnceMore.add(chatId)
  return world.tables.usages.some((usage) => usage.chatId === chatId && usage.status === 'pending')
}
