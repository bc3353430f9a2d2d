import { expect } from 'chai'
import { type Chat, defineAgent, type Observation, type Receipt, type Threadmill } from '../../src/index.ts'
import { text, toolCalls } from '../../src/testing/index.ts'
import { chatRow } from '../chat/support/rows.ts'
import { call, freshId, recording } from '../chat/support/tools.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'

const CHATS = 5
const POSTERS = 2
const EACH = 10

onEachDatabase('Messages that interrupt short turns', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 20_000 })

  for (const [what, tools] of [
    ['answers', false],
    ['rounds of tools', true],
  ] as const) {
    it(`are each delivered once, and leave nothing behind, in a hundred races with ${what} (E77)`, async function () {
      this.timeout(180_000)
      await bench.script(({ messages }) => {
        const last = messages.at(-1)
        if (!tools || last?.role === 'tool') return text('a short answer', { chunks: 'words', delayMs: 5 })
        return toolCalls([call('look', freshId())], { delayMs: 5 })
      })
      const agent = defineAgent({ name: `short-${what}`, tools: [recording('look', [])] })
      const ended: Observation[] = []
      const onObservation = (observation: Observation) => {
        if (observation.type === 'run.ended') ended.push(observation)
      }
      const workers = await Promise.all([1, 2].map(() => bench.connect({ agents: [agent], onObservation })))
      await Promise.all(workers.map((worker) => worker.startWorkers().ready()))
      const web = await Promise.all(Array.from({ length: POSTERS }, () => bench.connect({ agents: [agent] })))
      const [first] = web
      if (first === undefined) throw new Error('There is no connection')
      const chats = await Promise.all(Array.from({ length: CHATS }, () => first.chats.create({ agent })))

      const receipts = new Map<string, Receipt>()
      const post = async (mill: Threadmill, chatId: string, name: string) => {
        const chat = await mill.chats.find(chatId)
        for (let at = 0; at < EACH; at++) {
          const content = `${name}${at} of ${chatId}`
          const receipt = await chat.post(content, { whileRunning: 'interrupt' })
          receipts.set(content, receipt)
          // The next one falls somewhere into the turn that this one is taken up by.
          await until('it was taken', async () => (await chat.receipt(receipt))?.status === 'delivered', 60_000)
        }
      }
      await Promise.all(chats.flatMap(({ id }) => web.map((mill, at) => post(mill, id, `p${at}-`))))
      await until('every chat is at rest', async () => (await Promise.all(chats.map(isAtRest))).every(Boolean), 60_000)

      expect(receipts.size).to.equal(CHATS * POSTERS * EACH)
      for (const chat of chats) {
        const messages = await chat.messages()
        const asked = messages.filter(({ role }) => role === 'user')
        const posted = [...receipts].filter(([content]) => content.endsWith(chat.id))
        expect(asked.map(({ content }) => content)).to.have.members(posted.map(([content]) => content))
        for (const [content, { id }] of posted) {
          const messageId = asked.find((message) => message.content === content)?.id
          expect(await chat.receipt(id)).to.deep.include({ status: 'delivered', messageId })
        }
        expect(messages.at(-1)?.role).to.equal('assistant')
        expect(messages.flatMap(({ toolCalls: calls }) => calls).filter(({ resultId }) => resultId === null)).to.eql([])
        expect(await chat.queuedMessages()).to.eql([])
        const { wantedAt, claimedBy, failure, parked, cancelTurn, turn } = await chatRow(first, chat)
        expect([wantedAt, claimedBy, failure, parked, cancelTurn === turn]).to.eql([null, null, null, false, false])
      }
      const outcomes = ended.map((observation) => (observation.type === 'run.ended' ? observation.outcome : ''))
      expect(outcomes, 'some turns were cut off, and some were not').to.include.members(['cancelled', 'answered'])
      expect(new Set(outcomes)).not.to.include('failed')
      const statuses = [...receipts.values()].map(({ status }) => status)
      expect(statuses, 'some had to wait').to.include('waiting')
    })
  }
})

async function isAtRest(chat: Chat): Promise<boolean> {
  return (await chat.isComplete()) && !(await chat.running())
}
