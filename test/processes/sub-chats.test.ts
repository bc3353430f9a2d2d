import { expect } from 'chai'
import { text, toolCalls } from '../../src/testing/index.ts'
import { call, freshId } from '../chat/support/tools.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { agents } from './apps/delegates.ts'
import { expectWhole, isAtRest, transcriptOf } from './support/rows.ts'
import { type DeathAt, statements, useWorkers } from './support/workers.ts'

const LIMIT_MS = 90_000
const { any, commits, linksResult } = statements
const pauses = /^UPDATE \S*tool_calls\S* SET mcp_state = \S+, claimed_by/
const makes = /^INSERT INTO \S*chats/
const reports = /^UPDATE \S*tool_calls\S* SET mcp_state = \S+, updated_at/

/** Where the first worker dies. The researcher is asked once all the same. */
const deaths: { when: string; dieAt: DeathAt }[] = [
  { when: 'before the call waits', dieAt: [pauses] },
  { when: 'while the sub-chat is made', dieAt: [pauses, makes] },
  { when: 'before that is committed', dieAt: [pauses, makes, commits] },
  { when: 'after that', dieAt: [pauses, makes, commits, any] },
  { when: 'before the call is told of the answer', dieAt: [reports] },
  { when: 'before that is committed too', dieAt: [reports, commits] },
  { when: 'after the call was told', dieAt: [reports, commits, any] },
  { when: 'before the answer is the call’s result', dieAt: [reports, linksResult, commits] },
  { when: 'after it is', dieAt: [reports, linksResult, commits, any] },
]

onEachDatabase('A worker that dies over a sub-chat', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 2_000 })
  const workers = useWorkers()

  for (const { when, dieAt } of deaths) {
    it(`${when} loses and doubles nothing: another goes on, and the answer arrives once (E90)`, async () => {
      const counts = { editor: 0, researcher: 0 }
      await bench.script(({ messages }) => {
        const name = messages[0]?.content === 'editor' ? 'editor' : 'researcher'
        counts[name] += 1
        if (name === 'researcher') return text('Here.')
        return messages.at(-1)?.role === 'tool'
          ? text('Found.')
          : toolCalls([call('researcher', freshId(), { message: 'x' })])
      })
      const mill = await bench.connect({ agents })
      const chat = await mill.chats.create({ agent: 'editor' })
      const options = bench.options()
      const first = await workers.start({ app: 'delegates', options, dieAt })
      await chat.askLater('Where?', { enqueue: true })
      expect(await first.ended).to.equal(null)
      await workers.start({ app: 'delegates', options })
      await until('the chat is answered and given back', () => isAtRest(chat), 40_000)
      expect(await transcriptOf(chat)).to.eql(['U Where?', 'A[researcher]', 'T(researcher) succeeded', 'A Found.'])
      const subChats = await chat.subChats()
      expect(await Promise.all(subChats.map(transcriptOf))).to.eql([['U x', 'A Here.']])
      expect(counts).to.eql({ editor: 2, researcher: 1 })
      for (const one of [chat, ...subChats]) await expectWhole(mill, one)
    }).timeout(LIMIT_MS)
  }
})
