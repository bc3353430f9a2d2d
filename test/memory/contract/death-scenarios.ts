import { type Actor, noUsages } from './actor.ts'
import type { Scenario } from './scenarios.ts'

const chatId = 'chat'
const first = { chatId, claimId: 'first' }
const alone = { chatId, claimId: 'alone' }

/** A chat that has cost processes, and that this claim holds. */
async function held(act: Actor, id: string) {
  await act.chat(id, { deaths: 3, turn: 1, lastDeath: 'exit code 1' })
  await act.stage(id, `question-${id}`)
  await act.take(id, `of-${id}`, 'job')
  return { chatId: id, claimId: `of-${id}` }
}

/** How deaths over a chat are counted, forgiven, and what comes of them. */
export const deathScenarios: Readonly<Record<string, Scenario>> = {
  'processes that die over a chat': async (act) => {
    await act.chat(chatId)
    await act.stage(chatId, 'question')
    await act.take(chatId, 'first', 'job', { deathsBelow: 2 })
    await act.pass(61)
    await act.do('one', (on) => on.untaken(chatId))
    await act.take(chatId, 'second', 'job', { deathsBelow: 2 })
    await act.read(chatId)
    await act.pass(61)
    await act.take(chatId, 'third', 'job', { deathsBelow: 2 })
    await act.do('two', (on) => on.untaken(chatId))
    await act.do('noted', (on) => on.noteDeath({ chatId, how: 'signal SIGKILL', after: 1 }))
    await act.do('of a take before', (on) => on.noteDeath({ chatId, how: 'exit code 1', after: 2 }))
    await act.read(chatId)
    await act.take(chatId, 'alone', 'job', { deathsBelow: 5 })
    await act.read(chatId)
    await act.rows('begun', (rows) => rows.startToolCall(alone, { id: 'none', approval: null }))
    await act.release(alone, { kind: 'later', delayMs: 0 }, { seen: 1 })
    await act.do('nobody holds it', (on) => on.noteDeath({ chatId, how: 'exit code 1', after: 0 }))
    await act.read(chatId)
    await act.take(chatId, 'alone', 'verb')
    await act.pass(61)
    await act.take(chatId, 'of a caller', 'complete')
    await act.read(chatId)
  },
  'runs that a failing process could not finish': async (act) => {
    await act.chat(chatId, { deaths: 1, compactSeq: 1, compactAt: act.now() })
    await act.stage(chatId, 'question')
    await act.take(chatId, 'first', 'job')
    await act.release(first, { kind: 'now', queue: 'complete' }, { seen: 1, died: true })
    await act.take(chatId, 'alone', 'compact-job')
    await act.rows('given back', (rows) =>
      rows.releaseCompaction(alone, { seen: 1, wish: { kind: 'unchanged' }, died: true }),
    )
    await act.read(chatId)
  },
  'summaries that processes die over': async (act) => {
    await act.chat(chatId, { compactSeq: 1, compactAt: act.now() })
    await act.take(chatId, 'first', 'compact-job', { deathsBelow: 2 })
    await act.pass(61)
    await act.take(chatId, 'second', 'compact', { deathsBelow: null })
    await act.pass(61)
    await act.take(chatId, 'third', 'compact-job', { deathsBelow: 2 })
    await act.read(chatId)
    await act.take(chatId, 'alone', 'compact-job', { deathsBelow: 5 })
    const message = { ...act.say(chatId, 'summary'), summaryThrough: 0 }
    await act.rows('counted', (rows) => rows.countCompaction(alone))
    await act.read(chatId)
    await act.rows('stored', (rows) => rows.commitSummary(alone, { message, ...noUsages, seen: 1 }))
    await act.read(chatId)
  },
  'moves by which deaths are counted anew': async (act) => {
    await act.answer(await held(act, 'answered'), 'answer')
    const called = await held(act, 'called')
    await act.answer(called, 'calls', ['one', 'two'])
    for (const [at, id] of ['started', 'paused', 'transferred', 'cancelled', 'queued', 'asking'].entries()) {
      const key = await held(act, id)
      await act.queue(id, `waits-${id}`)
      const queued = await act.rows('queue', (rows) => rows.queue(id))
      switch (id) {
        case 'started':
          await act.rows(id, (rows) => rows.startToolCall(key, { id: 'calls-0', approval: null }))
          break
        case 'paused':
          await act.rows(id, (rows) => rows.pauseToolCall(key, { id: 'none', state: {} }))
          break
        case 'transferred':
          await act.rows(id, (rows) =>
            rows.transfer(key, { agent: 'sales', inputs: null, leavesInstructions: false, instructions: null }),
          )
          break
        case 'cancelled':
          await act.cancel(id)
          await act.rows(id, (rows) => rows.settleCancelled(key, { shown: null, ...noUsages, closed: [] }))
          break
        case 'queued':
          await act.takeQueue(key, queued ?? [], false)
          break
        default:
          await act.rows(id, (rows) => rows.setApproval(key, { id: `none-${at}`, from: null, to: 'pending' }))
      }
    }
  },
  'what lifts a failure, and what it forgives': async (act) => {
    for (const deaths of [1, 2, 5]) {
      for (const failure of [act.failure(1), null]) {
        const chat = { turn: 1, deaths, failure }
        const name = (what: string) => `${what}-${deaths}-${failure === null ? 'well' : 'failed'}`
        await act.chat(name('asked'), chat)
        await act.stage(name('asked'), name('question'))
        await act.chat(name('queued'), chat)
        await act.queue(name('queued'), name('waits'))
        await act.chat(name('posted'), chat)
        await act.post(name('posted'), name('post'), 'queue')
        await act.chat(name('wanted'), chat)
        await act.do('wanted', (on) => on.want(name('wanted'), { delayMs: 0, queue: 'complete' }))
        await act.chat(name('completed'), chat)
        await act.take(name('completed'), name('claim'), 'complete')
        await act.chat(name('stepped'), chat)
        await act.take(name('stepped'), name('step'), 'verb')
        await act.chat(name('above'))
        await act.stage(name('above'), name('asked above'))
        const above = { chatId: name('above'), claimId: name('holder') }
        await act.take(above.chatId, above.claimId, 'job')
        await act.answer(above, name('calls'), [name('call')])
        await act.chat(name('below'), {
          ...chat,
          parked: true,
          parentId: above.chatId,
          parentCallId: `${name('calls')}-0`,
        })
        await act.cancel(above.chatId)
      }
    }
    await act.read('wanted-5-failed')
  },
  'a cancel of a failed turn whose mover by hand dies': async (act) => {
    await act.chat(chatId, { turn: 1, failure: act.failure(1) })
    await act.take(chatId, 'first', 'verb')
    await act.cancel(chatId)
    await act.do('while he lives', (on) => on.dueChats(10))
    await act.pass(61)
    await act.do('afterwards', (on) => on.dueChats(10))
    await act.take(chatId, 'alone', 'job', { deathsBelow: 2 })
    await act.rows('carried out', (rows) => rows.settleCancelled(alone, { shown: null, ...noUsages, closed: [] }))
    await act.read(chatId)
    await act.do('met', (on) => on.dueChats(10))
  },
  'a chat that is set aside': async (act) => {
    const failure = act.failure(1)
    const aside = (id: string) => act.rows('set aside', (rows) => rows.setAside({ chatId: id, failure, deaths: 5 }))
    await act.chat(chatId, {
      deaths: 3,
      attempts: 5,
      putOff: 1,
      parked: true,
      compactAt: act.now(),
      compactAttempts: 1,
    })
    await act.stage(chatId, 'question')
    await act.take(chatId, 'first', 'job')
    await aside(chatId)
    await act.pass(61)
    await aside(chatId)
    await act.take(chatId, 'alone', 'job', { deathsBelow: 5 })
    await aside(chatId)
    await act.cancel(chatId)
    await act.pass(61)
    await act.take(chatId, 'refused', 'job', { deathsBelow: 5 })
    await aside(chatId)
    await aside(chatId)
    await act.answer(first, 'late')
    await act.read(chatId)
    await act.chat('given back', { deaths: 5 })
    await aside('given back')
    await act.do('later', (on) => on.want('given back', { delayMs: 5 * 60_000, queue: 'complete' }))
    await aside('given back')
    await act.pass(10)
    await aside('given back')
    await act.chat('a summary', { deaths: 5, compactAt: act.now(), compactSeq: 1, turn: 2, failure: act.failure(2) })
    await aside('a summary')
    await aside('none')
    await act.read('a summary')
  },
}
