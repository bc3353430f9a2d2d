import { newMessage } from '../../../models/new-message.ts'
import { noUsages } from './actor.ts'
import type { Scenario } from './scenarios.ts'

const chatId = 'chat'
const first = { chatId, claimId: 'first' }
const second = { chatId, claimId: 'second' }

/** What a run writes, and what applications write beside it. */
export const turnScenarios: Readonly<Record<string, Scenario>> = {
  'a turn with a round, under its claim': async (act) => {
    await act.chat(chatId)
    await act.stage(chatId, 'question')
    await act.take(chatId, 'first', 'job')
    await act.answer(first, 'calls', ['one', 'two', 'three'])
    await act.rows('calls', (rows) => rows.toolCalls('calls'))
    await act.rows('started', (rows) => rows.startToolCall(first, { id: 'calls-0', approval: null }))
    await act.rows('no such decision', (rows) => rows.startToolCall(first, { id: 'calls-1', approval: 'approved' }))
    await act.rows('no such call', (rows) => rows.startToolCall(first, { id: 'none', approval: null }))
    await act.pass(1)
    const result = { callId: 'calls-0', message: act.result(chatId, 'result-0') }
    await act.rows('answered', (rows) => rows.commitToolResult(first, result))
    const twice = { callId: 'calls-0', message: act.result(chatId, 'result-00') }
    await act.pass(1)
    await act.rows('answered twice', (rows) => rows.commitToolResult(first, twice))
    const denied = { callId: 'calls-1', message: act.result(chatId, 'result-1'), approval: 'denied' as const }
    await act.rows('on another decision', (rows) => rows.commitToolResult(first, denied))
    await act.rows('given up', (rows) =>
      rows.closeToolCalls(first, [
        { callId: 'calls-1', message: act.result(chatId, 'result-1') },
        { callId: 'calls-2', message: act.result(chatId, 'result-2') },
      ]),
    )
    await act.rows('nothing to give up', (rows) => rows.closeToolCalls(first, []))
    await act.read(chatId)
    await act.answer(first, 'answer')
    await act.release(first, { kind: 'none' }, { seen: 1, turnEnded: true })
    await act.read(chatId)
  },
  'every write of a run whose claim has lapsed, or is another’s': async (act) => {
    await act.chat(chatId)
    await act.stage(chatId, 'question')
    await act.take(chatId, 'first', 'job')
    await act.answer(first, 'calls', ['one'])
    const queued = await act.queue(chatId, 'waits')
    for (const passed of [61, 0]) {
      await act.pass(passed)
      if (passed === 0) await act.take(chatId, 'second', 'job')
      await act.answer(first, `late-${passed}`)
      await act.rows('start', (rows) => rows.startToolCall(first, { id: 'calls-0', approval: null }))
      await act.rows('decision', (rows) => rows.setApproval(first, { id: 'calls-0', from: null, to: 'pending' }))
      await act.rows('pause', (rows) => rows.pauseToolCall(first, { id: 'calls-0', state: {} }))
      const result = { callId: 'calls-0', message: act.result(chatId, `late-result-${passed}`) }
      await act.rows('result', (rows) => rows.commitToolResult(first, result))
      await act.rows('closing', (rows) => rows.closeToolCalls(first, [result]))
      if (queued !== null) await act.takeQueue(first, [queued], false)
      await act.rows('cancel', (rows) => rows.settleCancelled(first, { shown: null, ...noUsages, closed: [] }))
      await act.rows('count', (rows) => rows.countCompaction(first))
      const transfer = { agent: 'sales', inputs: null, leavesInstructions: false, instructions: null }
      await act.rows('transfer', (rows) => rows.transfer(first, transfer))
      await act.release(first, { kind: 'none' })
    }
    await act.answer(second, 'in time')
  },
  'call ids that the table holds already': async (act) => {
    await act.chat(chatId)
    await act.take(chatId, 'first', 'verb')
    await act.answer(first, 'calls', ['one', 'two'])
    await act.answer(first, 'same ids', ['three', 'two'])
    await act.read(chatId)
  },
  'messages that are queued, taken back and taken': async (act) => {
    await act.chat(chatId)
    await act.queue(chatId, 'quiet', { wake: false, steer: false })
    await act.queue(chatId, 'steering', { owner: 'someone' })
    await act.queue(chatId, 'withdrawn')
    await act.pass(2)
    await act.do('withdrawn', (on) => on.unqueue(chatId, 'withdrawn'))
    await act.do('withdrawn twice', (on) => on.unqueue(chatId, 'withdrawn'))
    await act.do('of no chat', (on) => on.unqueue('none', 'quiet'))
    await act.queue('none', 'nowhere')
    await act.read(chatId)
    await act.take(chatId, 'first', 'job')
    const queue = (await act.rows('the queue', (rows) => rows.queue(chatId))) ?? []
    await act.takeQueue(first, [...queue, ...queue.slice(0, 1).map((row) => ({ ...row, id: 'gone' }))], true)
    await act.takeQueue(first, queue.slice(1), false)
    await act.takeQueue(first, queue.slice(0, 1), true)
    await act.pass(1)
    await act.takeQueue(first, queue.slice(0, 1), true)
    await act.read(chatId)
  },
  'messages that are asked behind those that wait, or while a run or a round goes on': async (act) => {
    await act.chat(chatId, { failure: act.failure(0), cancelledTurn: 0 })
    await act.queue(chatId, 'waits')
    await act.stage(chatId, 'question', { want: false })
    await act.read(chatId)
    await act.take(chatId, 'first', 'complete')
    await act.stage(chatId, 'during the run')
    await act.answer(first, 'calls', ['one'])
    await act.release(first, { kind: 'none' }, { seen: 2, parked: true })
    await act.stage(chatId, 'during the round')
    await act.stage('none', 'nowhere')
    await act.read(chatId)
  },
  'messages that are posted whatever the chat does': async (act) => {
    for (const how of ['queue', 'steer', 'interrupt', 'reject'] as const) {
      const id = `chat-${how}`
      const key = { chatId: id, claimId: `claim-${how}` }
      await act.chat(id)
      await act.post(id, `idle-${how}`, how, { want: false })
      await act.take(id, key.claimId, 'verb')
      await act.post(id, `running-${how}`, how)
      await act.answer(key, `calls-${how}`, [`call-${how}`])
      await act.pass(61)
      await act.post(id, `open-${how}`, how, { want: false })
      await act.read(id)
    }
  },
  'a cancel, in every state of a chat': async (act) => {
    await act.chat(chatId)
    await act.cancel(chatId)
    await act.cancel('none')
    await act.stage(chatId, 'question')
    await act.cancel(chatId, 7)
    await act.cancel(chatId)
    await act.read(chatId)
    await act.take(chatId, 'first', 'job')
    await act.answer(first, 'unwelcome')
    await act.rows('start', (rows) => rows.startToolCall(first, { id: 'none', approval: null }))
    const queued = await act.queue(chatId, 'waits')
    if (queued !== null) await act.takeQueue(first, [queued], false)
    await act.rows('settled', (rows) =>
      rows.settleCancelled(first, { shown: act.say(chatId, 'shown'), ...noUsages, closed: [] }),
    )
    await act.read(chatId)
    await act.take(chatId, 'second', 'job')
    if (queued !== null) await act.takeQueue(second, [queued], true)
    await act.answer(second, 'calls', ['one', 'two'])
    await act.release(second, { kind: 'none' }, { seen: 3, parked: true })
    await act.cancel(chatId)
    await act.take(chatId, 'third', 'job')
    const closed = ['calls-0', 'calls-1'].map((callId) => ({ callId, message: act.result(chatId, `r-${callId}`) }))
    const third = { chatId, claimId: 'third' }
    await act.rows('settled', (rows) => rows.settleCancelled(third, { shown: null, ...noUsages, closed }))
    await act.read(chatId)
    await act.cancel(chatId)
    await act.chat('summarised', { compactAt: act.now(), compactAttempts: 2 })
    await act.cancel('summarised')
  },
  'a chat that goes to another agent': async (act) => {
    const system = newMessage({ id: 'system', chatId, role: 'system', content: 'Be kind.', createdAt: act.now() })
    await act.chat(chatId, { agent: 'support', settings: { tools: ['one'], temperature: 0.5 } })
    await act.take(chatId, 'first', 'verb', { agents: ['support'] })
    await act.rows('a system message', (rows) =>
      rows.commitAnswer(first, { message: system, toolCalls: [], ...noUsages }),
    )
    await act.answer(first, 'calls', ['one'])
    const transfer = { agent: 'sales', inputs: { plan: 'pro' } }
    const result = { callId: 'calls-0', message: act.result(chatId, 'result'), transfer }
    await act.rows('asked for', (rows) => rows.commitToolResult(first, result))
    const made = { ...transfer, leavesInstructions: false, instructions: 'Sell.' }
    await act.rows('to another', (rows) => rows.transfer(first, { ...made, agent: 'desk' }))
    await act.rows('with others', (rows) => rows.transfer(first, { ...made, inputs: null }))
    await act.rows('done', (rows) => rows.transfer(first, made))
    await act.read(chatId)
    await act.rows('done twice', (rows) => rows.transfer(first, made))
    for (const [at, instructions] of ['Sell.', null, 'Sell more.'].entries()) {
      const id = `goes-${at}`
      await act.chat(id, { transferTo: transfer })
      await act.take(id, id, 'verb')
      const leavesInstructions = at < 2
      await act.rows('done', (rows) =>
        rows.transfer({ chatId: id, claimId: id }, { ...made, leavesInstructions, instructions }),
      )
      await act.read(id)
    }
  },
}
