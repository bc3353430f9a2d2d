import { argumentsHash } from '../../../models/arguments-hash.ts'
import type { PauseState } from '../../../models/waiting.ts'
import { emptyChat } from '../../support/empty-chat.ts'
import type { Actor } from './actor.ts'
import type { Scenario } from './scenarios.ts'

const chatId = 'chat'
const first = { chatId, claimId: 'first' }
const second = { chatId, claimId: 'second' }

/** A chat that is held, with a round of three calls. */
async function open(act: Actor): Promise<void> {
  await act.chat(chatId)
  await act.stage(chatId, 'question')
  await act.take(chatId, 'first', 'job')
  await act.answer(first, 'calls', ['one', 'two', 'three'])
}

/** What is asked and decided about calls, and what they wait for. */
export const decisionScenarios: Readonly<Record<string, Scenario>> = {
  'questions about calls, and decisions': async (act) => {
    await open(act)
    await act.rows('asked', (rows) => rows.setApproval(first, { id: 'calls-0', from: null, to: 'pending' }))
    await act.pass(1)
    await act.rows('asked twice', (rows) => rows.setApproval(first, { id: 'calls-0', from: null, to: 'pending' }))
    const expiresAt = new Date(act.now().getTime() + 5 * 60_000)
    await act.rows('asked for a time', (rows) =>
      rows.setApproval(first, { id: 'calls-1', from: null, to: 'pending', expiresAt }),
    )
    await act.decide(chatId, 'one', 'approved', { by: 'ann', reason: 'fine', arguments: { at: 1 } })
    await act.decide(chatId, 'calls-0', 'remembered', { ifUndecided: true })
    await act.decide(chatId, 'calls-0', 'denied', { wake: false })
    await act.decide(chatId, 'calls-1', 'remembered', { argumentsHash: 'of something else' })
    const hash = argumentsHash({ name: 'free', arguments: {}, editedArguments: null })
    await act.decide(chatId, 'calls-1', 'remembered', { argumentsHash: hash })
    await act.decide(chatId, 'none', 'approved')
    await act.decide('none', 'calls-1', 'approved')
    await act.decide(chatId, 'x'.repeat(300), 'approved')
    await act.rows('started', (rows) => rows.startToolCall(first, { id: 'calls-2', approval: null }))
    await act.decide(chatId, 'calls-2', 'denied')
    await act.read(chatId)
    await act.pass(61)
    await act.decide(chatId, 'calls-2', 'denied')
    const result = { callId: 'calls-2', message: act.result(chatId, 'too late') }
    await act.rows('too late', (rows) => rows.commitToolResult(first, result))
    await act.take(chatId, 'second', 'job')
    const denied = { callId: 'calls-2', message: act.result(chatId, 'denied'), approval: 'denied' as const }
    await act.rows('answered', (rows) => rows.commitToolResult(second, denied))
    await act.decide(chatId, 'calls-2', 'approved')
  },
  'an interrupted call that a person is asked about': async (act) => {
    await open(act)
    await act.rows('started', (rows) => rows.startToolCall(first, { id: 'calls-0', approval: null }))
    await act.pass(61)
    await act.take(chatId, 'second', 'job')
    const asked = { id: 'calls-0', from: null, to: 'pending', interrupted: true } as const
    await act.rows('asked', (rows) => rows.setApproval(second, asked))
    await act.decide(chatId, 'calls-0', 'approved')
    await act.rows('started', (rows) => rows.startToolCall(second, { id: 'calls-0', approval: 'approved' }))
    await act.rows('pending', (rows) => rows.setApproval(second, { id: 'calls-1', from: null, to: 'pending' }))
    await act.rows('let run', (rows) => rows.startToolCall(second, { id: 'calls-1', approval: 'pending' }))
    const expired = { id: 'calls-2', from: null, to: 'denied', expired: 'in vain' } as const
    await act.rows('expired', (rows) => rows.setApproval(second, expired))
  },
  'calls that wait for answers': async (act) => {
    await open(act)
    const request = (key: string) => ({
      ...{ key, message: 'How many?', fields: [{ name: 'n' }], expiresAt: null },
      onExpired: 'decline' as const,
    })
    const state = { requests: [request('a'), request('b'), request('c')] }
    await act.rows('started', (rows) => rows.startToolCall(first, { id: 'calls-0', approval: null }))
    await act.rows('paused', (rows) => rows.pauseToolCall(first, { id: 'calls-0', state }))
    await act.rows('no such call', (rows) => rows.pauseToolCall(first, { id: 'none', state }))
    const said = { chatId, call: 'one', by: 'ann', reason: null, wake: true }
    await act.do('answered', (on) => on.answer({ ...said, key: 'a', answer: () => ({ n: 3 }) }))
    await act.do('answered twice', (on) => on.answer({ ...said, key: 'a', answer: () => ({ n: 4 }) }))
    await act.do('declined', (on) => on.answer({ ...said, key: 'b', answer: null, wake: false }))
    await act.do('not asked', (on) => on.answer({ ...said, key: 'z', answer: null }))
    await act.do('no such call', (on) => on.answer({ ...said, call: 'none', key: 'a', answer: null }))
    const settled = { requests: [request('a'), request('b'), { ...request('c'), declined: true as const }] }
    const late = { reason: 'nobody answered', seen: ['b', 'c'] }
    await act.rows('answered meanwhile', (rows) =>
      rows.pauseToolCall(first, { id: 'calls-0', state: settled, expired: late }),
    )
    const expired = { reason: 'nobody answered', seen: ['c'] }
    await act.rows('expired', (rows) => rows.pauseToolCall(first, { id: 'calls-0', state: settled, expired }))
    await act.read(chatId)
    const result = { callId: 'calls-0', message: act.result(chatId, 'result') }
    await act.rows('done', (rows) => rows.commitToolResult(first, result))
    await act.do('too late', (on) => on.answer({ ...said, key: 'a', answer: null }))
  },
  'decisions about a turn that was given up': async (act) => {
    await open(act)
    const state = { requests: [{ key: 'a', message: 'How many?', fields: [], expiresAt: null, onExpired: 'decline' }] }
    await act.rows('paused', (rows) => rows.pauseToolCall(first, { id: 'calls-1', state: state as PauseState }))
    await act.release(first, { kind: 'none' }, { seen: 1, failure: act.failure(1), turnEnded: true })
    await act.decide(chatId, 'calls-0', 'approved', { wake: false })
    await act.read(chatId)
    await act.decide(chatId, 'calls-0', 'approved')
    await act.read(chatId)
    await act.take(chatId, 'second', 'job')
    await act.release(second, { kind: 'none' }, { seen: 3, failure: act.failure(1), turnEnded: true })
    const said = { chatId, call: 'two', by: null, reason: null, key: 'a', answer: () => ({}) }
    await act.do('answered', (on) => on.answer({ ...said, wake: true }))
    await act.read(chatId)
  },
  'calls that another agent answers in a chat of its own': async (act) => {
    await open(act)
    const parent = { id: chatId, owner: 'someone', rootId: null, depth: 0 }
    const subChat = (id: string, instructions: string | null) => ({
      ...{ id, agent: 'research', messageId: `${id}-first`, message: 'Find out.', inputs: { deep: true } },
      ...{ instructions, parent },
    })
    for (const [at, instructions] of ['Search.', null].entries()) {
      const id = `sub-${at}`
      const state = { subChat: { id, agent: 'research', expiresAt: null } }
      const pause = { id: `calls-${at}`, state, subChat: subChat(id, instructions) }
      await act.rows('paused', (rows) => rows.pauseToolCall(first, pause))
    }
    await act.read('sub-0')
    await act.take('sub-0', 'below', 'job', { agents: ['research'] })
    const below = { chatId: 'sub-0', claimId: 'below' }
    const row = { ...emptyChat, id: 'sub-0', agent: 'research', createdAt: act.now(), updatedAt: act.now() }
    const sub = { ...row, parentId: chatId, parentCallId: 'calls-0' }
    const answered = { kind: 'answered', content: 'Found.' } as const
    const lost = { ...below, claimId: 'lost' }
    await act.pass(1)
    await act.rows('by another', (rows) => rows.reportToParent(sub, answered, lost))
    await act.rows('told', (rows) => rows.reportToParent(sub, answered, below))
    await act.rows('told twice', (rows) => rows.reportToParent(sub, { kind: 'cancelled' }, below))
    await act.chat('deep', { wantedAt: act.now(), parentId: 'sub-0', parentCallId: null })
    await act.rows('given up', (rows) => rows.reportToParent(sub, { kind: 'failed', message: 'No.' }, below))
    await act.read('deep')
    await act.rows('of no parent', (rows) => rows.reportToParent({ ...row }, answered, below))
    const result = { callId: 'calls-1', message: act.result(chatId, 'given up'), abandons: 'sub-1' }
    await act.rows('given up', (rows) => rows.commitToolResult(first, result))
    await act.cancel(chatId)
    await act.read('sub-1')
    await act.release(first, { kind: 'none' }, { seen: 3, failure: act.failure(1) })
    await act.chat('given-up', { turn: 2, failure: act.failure(2), parentId: 'sub-0', parentCallId: null })
    await act.chat('busy', { wantedAt: act.now(), parentId: 'given-up', parentCallId: null })
    await act.cancel('given-up', 1)
    await act.read('busy')
    await act.cancel('given-up', 2)
    await act.read('busy')
    await act.cancel(chatId)
    await act.read('busy')
  },
  'sub-chats that were given up, and that nobody waits for any longer': async (act) => {
    await open(act)
    await act.chat('unmanned', { failure: act.failure(1), parentId: chatId, parentCallId: 'calls-0' })
    await act.chat('left', { failure: act.failure(1), parentId: chatId, parentCallId: 'calls-1' })
    const left = { callId: 'calls-1', message: act.result(chatId, 'left alone'), abandons: 'left' }
    await act.rows('left alone', (rows) => rows.commitToolResult(first, left))
    await act.read('left')
    await act.take('left', 'left', 'job')
    await act.cancel(chatId)
    await act.read('unmanned')
  },
}
