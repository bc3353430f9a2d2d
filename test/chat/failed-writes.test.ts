import { expect } from 'chai'
import { defineAgent, type Threadmill } from '../../src/index.ts'
import { text, toolCalls } from '../../src/testing/index.ts'
import { type DatabaseKind, onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { errorFrom } from '../tools/rows.ts'
import { resultsById, roles } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

/** From now on the database itself refuses every row of this role; the function that comes back ends that. */
async function refuse(
  mill: Threadmill,
  kind: DatabaseKind,
  role: 'tool' | 'assistant',
): Promise<() => Promise<unknown>> {
  const head = 'CREATE TRIGGER full_disk BEFORE INSERT ON threadmill_messages'
  const sql =
    kind.name === 'SQLite'
      ? `${head} WHEN NEW.role = '${role}' BEGIN SELECT RAISE(ABORT, 'the disk is full'); END`
      : `${head} FOR EACH ROW IF NEW.role = '${role}' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the disk is full'; END IF`
  await mill.sequelize.query(sql)
  return () => mill.sequelize.query('DROP TRIGGER full_disk')
}

onEachDatabase('A row that the database refuses', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })

  async function setUp() {
    const ids = [freshId(), freshId()]
    await bench.script([
      toolCalls(ids.map((id) => call('read', id))),
      ...['Both read.', 'Once more.'].map((said) => text(said)),
    ])
    const keys: string[] = []
    const tool = recording('read', [], {}, ({ idempotencyKey }) => {
      keys.push(idempotencyKey)
      return 'read done'
    })
    const agent = defineAgent({ name: freshName(), tools: [tool] })
    const mill = await bench.connect({ agents: [agent] })
    return { ids, keys, mill, chat: await mill.chats.create({ agent }) }
  }

  it('leaves a call whose result it was open, to be run again under the same key; the chat can be sent (B70)', async () => {
    const { ids, keys, mill, chat } = await setUp()
    const accept = await refuse(mill, kind, 'tool')
    try {
      expect(await errorFrom(() => chat.ask('Go'))).to.have.nested.property('parent.message', 'the disk is full')
      expect(await roles(chat)).to.equal('user assistant')
      expect([await chat.running(), await chat.isComplete()]).to.deep.equal([false, false])
    } finally {
      await accept()
    }
    expect((await chat.complete())?.content).to.equal('Both read.')
    expect([keys[0], new Set(keys).size, keys.length]).to.deep.equal([keys[1], 2, 3])
    expect(Object.keys(await resultsById(chat))).to.have.members(ids)
    const sent = bench.model.requests[1]?.messages.slice(2) ?? []
    expect(sent.map((message) => message.tool_call_id)).to.deep.equal(ids)
  })

  it('leaves a turn whose answer it was unanswered: it is asked for again, and both attempts are in the ledger (B70)', async () => {
    const { mill, chat } = await setUp()
    await chat.askLater('Go')
    await chat.step()
    await chat.runTools()
    const accept = await refuse(mill, kind, 'assistant')
    try {
      expect(await errorFrom(() => chat.complete())).to.have.nested.property('parent.message', 'the disk is full')
      expect(await roles(chat)).to.equal('user assistant tool tool')
    } finally {
      await accept()
    }
    expect((await chat.complete())?.content).to.equal('Once more.')
    expect(await roles(chat)).to.equal('user assistant tool tool assistant')
    const usages = await mill.models.Usage.findAll({ where: { chatId: chat.id }, order: ['createdAt', 'id'] })
    expect(usages.map(({ messageId }) => messageId === null)).to.deep.equal([false, true, false])
  })
})
