import { type Actor, noUsages } from './actor.ts'
import { deathScenarios } from './death-scenarios.ts'
import { decisionScenarios } from './decision-scenarios.ts'
import { turnScenarios } from './turn-scenarios.ts'

export type Scenario = (act: Actor) => Promise<void>

const chatId = 'chat'
const first = { chatId, claimId: 'first' }
const other = { chatId, claimId: 'other' }

/** What is taken, renewed, refused and given back. */
const claimScenarios: Readonly<Record<string, Scenario>> = {
  'takes, for every reason': async (act) => {
    await act.chat(chatId)
    await act.take(chatId, 'a job', 'job')
    await act.take(chatId, 'a summary', 'compact-job')
    await act.stage(chatId, 'question')
    await act.read(chatId)
    await act.take(chatId, 'first', 'job')
    await act.read(chatId)
    await act.take(chatId, 'other', 'job')
    await act.take(chatId, 'verb', 'verb')
    await act.pass(61)
    await act.read(chatId)
    await act.take(chatId, 'other', 'verb')
    await act.pass(61)
    await act.take(chatId, 'third', 'complete')
    await act.pass(61)
    await act.take(chatId, 'fourth', 'compact')
    await act.read(chatId)
    await act.do('nobody', (on) => on.untaken('none'))
    await act.take('none', 'fifth', 'verb')
  },
  'takes of agents that a process has, or has not': async (act) => {
    await act.chat(chatId, { agent: 'support' })
    await act.stage(chatId, 'question')
    await act.take(chatId, 'without', 'job')
    await act.take(chatId, 'of others', 'job', { agents: ['sales', 'billing'] })
    await act.read(chatId)
    await act.take(chatId, 'first', 'job', { agents: ['sales', 'support'] })
  },
  'a turn that is taken up again after it failed or was cancelled': async (act) => {
    const failure = act.failure(1)
    await act.chat(chatId, { turn: 1, failure, rounds: 3, compactions: 1, endedTurn: 1, attempts: 4 })
    await act.take(chatId, 'first', 'complete')
    await act.chat('second', { turn: 2, cancelledTurn: 2, rounds: 3, compactions: 1, endedTurn: 2 })
    await act.take('second', 'second', 'complete')
    await act.chat('third', { turn: 2, cancelledTurn: 1, rounds: 3, compactions: 1, endedTurn: 1 })
    await act.take('third', 'third', 'complete')
    await act.do('wanted', (on) => on.want('second', { delayMs: 0, queue: 'complete' }))
  },
  'a claim that is renewed, and one that lapsed and is never revived': async (act) => {
    await act.chat(chatId)
    await act.stage(chatId, 'question')
    await act.take(chatId, 'first', 'job')
    await act.pass(50)
    await act.do('renewed', (on) => on.renewChat(first, 60 * 60_000))
    await act.pass(50)
    await act.do('not mine', (on) => on.renewChat(other, 60 * 60_000))
    await act.read(chatId)
    await act.pass(11)
    await act.do('lapsed', (on) => on.renewChat(first, 60 * 60_000))
    await act.read(chatId)
    await act.answer(first, 'late')
    await act.release(first, { kind: 'none' })
    await act.do('a chat that is not there', (on) => on.renewChat({ ...first, chatId: 'none' }, 60_000))
    await act.answer({ ...first, chatId: 'none' }, 'nowhere')
  },
  'the claims of tool calls': async (act) => {
    await act.chat(chatId)
    await act.stage(chatId, 'question')
    await act.take(chatId, 'first', 'job')
    await act.answer(first, 'calls', ['one', 'two'])
    await act.rows('started', (rows) => rows.startToolCall(first, { id: 'calls-0', approval: null }))
    await act.pass(30)
    await act.do('kept', (on) => on.renewToolCall('calls-0', 'first', 60 * 60_000))
    await act.do('not mine', (on) => on.renewToolCall('calls-0', 'other', 60 * 60_000))
    await act.do('not begun', (on) => on.renewToolCall('calls-1', 'first', 60 * 60_000))
    await act.pass(61)
    await act.do('lapsed', (on) => on.renewToolCall('calls-0', 'first', 60 * 60_000))
  },
  'releases, with every wish': async (act) => {
    const wishes = [
      { kind: 'none' },
      { kind: 'now', queue: 'runTools' },
      { kind: 'later', delayMs: 5 * 60_000 },
      { kind: 'look-again', delayMs: 6 * 60_000 },
      { kind: 'put-off', delayMs: 7 * 60_000 },
    ] as const
    for (const [at, wish] of wishes.entries()) {
      for (const seen of [1, 0]) {
        const id = `chat-${at}-${seen}`
        const key = { chatId: id, claimId: `claim-${id}` }
        await act.chat(id, { endedTurn: 0, cancelTurn: 1, putOff: 2 })
        await act.stage(id, `question-${id}`)
        await act.take(id, key.claimId, 'job')
        await act.pass(1)
        const failure = at === 0 ? act.failure(1) : null
        await act.release(key, wish, { seen, failure, parked: at === 3, turnEnded: true })
        await act.release(key, wish, { seen })
      }
    }
    await act.read('chat-0-1')
    await act.do('due', (on) => on.dueChats(2))
    await act.do('all that is due', (on) => on.dueChats(50))
  },
  'the queries of the sweeper': async (act) => {
    await act.chat('idle')
    await act.chat('failed', { failure: act.failure(0) })
    for (const [at, id] of ['last', 'middle', 'early'].entries()) {
      await act.chat(id)
      await act.do('wanted', (on) => on.want(id, { delayMs: (3 - at) * 60_000, queue: 'complete' }))
    }
    await act.do('nothing yet', (on) => on.dueChats(10))
    await act.do('wanted sooner', (on) => on.want('last', { delayMs: 20_000, queue: 'runTools' }))
    await act.do('later wish', (on) => on.want('early', { delayMs: 5 * 60_000, queue: 'complete' }))
    await act.pass(10)
    await act.do('two', (on) => on.dueChats(2))
    await act.do('three', (on) => on.dueChats(10))
    await act.take('middle', 'first', 'job')
    await act.do('one is claimed', (on) => on.dueChats(10))
  },
  'summaries and the wish for them': async (act) => {
    await act.chat(chatId, { compactSeq: 1, compactAttempts: 1, compactAt: act.now(), turn: 1 })
    await act.read(chatId)
    await act.take(chatId, 'first', 'compact-job')
    await act.rows('counted', (rows) => rows.countCompaction(first))
    const summary = { ...act.say(chatId, 'summary'), summaryThrough: 0 }
    await act.rows('of another wish', (rows) => rows.commitSummary(first, { message: summary, ...noUsages, seen: 0 }))
    await act.read(chatId)
    await act.rows('recent', (rows) => rows.transcript(chatId, 0))
    const second = { ...act.say(chatId, 'second'), summaryThrough: 1 }
    await act.rows('met', (rows) => rows.commitSummary(first, { message: second, ...noUsages, seen: 1 }))
    await act.rows('given back', (rows) => rows.releaseCompaction(first, { seen: 1, wish: { kind: 'none' } }))
    await act.rows('again', (rows) => rows.releaseCompaction(first, { seen: 1, wish: { kind: 'none' } }))
    await act.take(chatId, 'other', 'compact')
    const later = { kind: 'later', delayMs: 5 * 60_000 } as const
    await act.rows('later', (rows) => rows.releaseCompaction(other, { seen: 1, wish: later }))
    await act.take(chatId, 'third', 'compact')
    const third = { chatId, claimId: 'third' }
    await act.cancel(chatId)
    await act.rows('counted', (rows) => rows.countCompaction(third))
    await act.rows('cancelled', (rows) => rows.commitSummary(third, { message: summary, ...noUsages, seen: 1 }))
    await act.rows('met', (rows) => rows.releaseCancelledCompaction(third))
    await act.rows('again', (rows) => rows.releaseCancelledCompaction(third))
    await act.read(chatId)
  },
  'usage entries': async (act) => {
    await act.chat(chatId, { claimToken: 2 })
    const usage = { chatId, owner: 'someone', operation: 'chat', provider: 'openai', model: 'any' } as const
    await act.rows('opened', (rows) => rows.openUsage({ ...usage, id: 'usage-1', answerId: 'one', claimToken: 1 }))
    await act.rows('opened', (rows) => rows.openUsage({ ...usage, id: 'usage-2', answerId: 'two', claimToken: 2 }))
    await act.read(chatId)
    await act.rows('orphans', (rows) => rows.closeOrphanedUsages(chatId, 2))
    await act.read(chatId)
    const tokens = {
      inputTokens: 10,
      outputTokens: 2,
      cacheReadTokens: 3,
      cacheWriteTokens: null,
      thinkingTokens: null,
    }
    const costs = { inputCost: '0.5', outputCost: null, cacheReadCost: null, cacheWriteCost: null, totalCost: null }
    const closing = { ...tokens, ...costs, status: 'succeeded', errorCode: null } as const
    await act.pass(2)
    await act.rows('closed', (rows) => rows.closeUsage('usage-2', closing))
    await act.rows('a late word', (rows) =>
      rows.closeUsage('usage-1', { ...closing, status: 'failed', errorCode: 'x' }),
    )
    await act.rows('none such', (rows) => rows.closeUsage('usage-3', closing))
    await act.take(chatId, 'first', 'verb')
    await act.answer(first, 'answer', [], ['usage-1', 'usage-2'])
    await act.read(chatId)
  },
}

/** By what they are about. */
export const scenarios: Readonly<Record<string, Scenario>> = {
  ...claimScenarios,
  ...deathScenarios,
  ...turnScenarios,
  ...decisionScenarios,
}
