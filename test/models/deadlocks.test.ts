import { expect } from 'chai'
import { v7 as uuid } from 'uuid'
import { toolCallColumns, usageColumns } from '../../models/columns.ts'
import type { Database } from '../../models/database.ts'
import { newMessage } from '../../models/new-message.ts'
import { newToolCall } from '../../models/new-tool-call.ts'
import type { ToolCallRow, UsageRow } from '../../models/rows.ts'
import { insertMessages } from '../../models/turns.ts'
import type { Chat } from '../../src/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { insidesOf } from '../support/insides.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'

const rounds = 50
const connections = 4

onEachDatabase('Two transactions that lock two chats in opposite orders', (kind) => {
  const bench = useBench(kind)

  it('store both answers whole, once, fifty times in a row, and keep all connections (B71)', async function () {
    this.timeout(120_000)
    const mill = await bench.connect({ databasePool: connections })
    const { db } = insidesOf(mill)
    let repeated = 0
    for (let round = 0; round < rounds; round++) {
      const chats = [await mill.chats.create(), await mill.chats.create()] as const
      let holding = 0
      const answers = await Promise.all(
        [chats, [chats[1], chats[0]] as const].map(async ([own, other]) => {
          let runs = 0
          const id = uuid()
          await db.transaction(async (transaction) => {
            runs++
            await reserve(db, own, 1, transaction)
            holding++
            // A transaction of SQLite has the database to itself, so there the other one can't hold its row yet.
            if (runs === 1 && kind.name !== 'SQLite') await until('both hold a row', () => holding >= 2)
            await reserve(db, other, 0, transaction)
            await insertAnswer(db, own, id, transaction)
          })
          repeated += runs - 1
          return id
        }),
      )
      for (const [at, chat] of chats.entries()) {
        const [answer, ...more] = await chat.messages()
        expect([answer?.id, answer?.toolCalls.length, more.length]).to.deep.equal([answers[at], 2, 0])
        expect(await mill.models.Usage.count({ where: { chatId: chat.id, messageId: answers[at] } })).to.equal(1)
        expect(await mill.models.ToolCall.count({ where: { chatId: chat.id } })).to.equal(2)
      }
    }
    if (kind.name !== 'SQLite') expect(repeated, 'deadlocks').to.be.at.least(rounds)
    // SQLite has one transaction at a time.
    const all = kind.name === 'SQLite' ? 1 : connections
    let open = 0
    const together = Array.from({ length: all }, () =>
      db.transaction(async (transaction) => {
        await db.read('SELECT 1', {}, transaction)
        open++
        await until('every connection has a transaction', () => open === all)
      }),
    )
    await Promise.all(together)
  })
})

type Transaction = Parameters<Database['transaction']>[1] & object

async function reserve(db: Database, { id }: Chat, messages: number, transaction: Transaction): Promise<void> {
  const sql = `UPDATE ${db.tables.chats} SET next_position = next_position + $messages WHERE id = $id`
  expect(await db.write(sql, { id, messages }, transaction)).to.equal(1)
}

async function insertAnswer(db: Database, { id: chatId }: Chat, id: string, transaction: Transaction): Promise<void> {
  const createdAt = new Date()
  await insertMessages(db, [newMessage({ id, chatId, role: 'assistant' })], transaction)
  const calls = [0, 1].map((position) => {
    const call = { id: uuid(), chatId, messageId: id, position, toolCallId: `call_${uuid()}`, name: 'look', createdAt }
    return newToolCall(call)
  })
  await db.insert<ToolCallRow>(db.tables.toolCalls, toolCallColumns, calls, { transaction })
  const usage = { id: uuid(), chatId, messageId: id, operation: 'chat', provider: 'openai', model: 'm', claimToken: 1 }
  const rest = { status: 'succeeded', owner: null, answerId: id, createdAt, updatedAt: createdAt } as const
  await db.insert<UsageRow>(db.tables.usages, usageColumns, [{ ...usage, ...rest } as UsageRow], { transaction })
}
