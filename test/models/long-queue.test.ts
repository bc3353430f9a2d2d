import { expect } from 'chai'
import { v7 as uuid } from 'uuid'
import { queuedMessageColumns } from '../../models/columns.ts'
import type { QueuedMessageRow } from '../../models/rows.ts'
import { deleteQueued } from '../../models/turns.ts'
import { onEachDatabase } from '../support/databases.ts'
import { insidesOf } from '../support/insides.ts'
import { useBench } from '../support/mills.ts'

/** More than SQLite takes values in one statement. */
const MANY = 33_000

onEachDatabase('A queue of tens of thousands', (kind) => {
  const bench = useBench(kind)

  it('leaves in statements that every database takes', async () => {
    const statements: string[] = []
    const mill = await bench.connect({ observe: { onStatement: (sql) => statements.push(sql) } })
    const { id: chatId } = await mill.chats.create()
    const { db } = insidesOf(mill)
    const rows = [0, 1].map(
      (position): QueuedMessageRow => ({
        ...{ id: uuid(), chatId, position, content: 'waits', attachments: null, steer: false },
        ...{ owner: null, ownerKey: null, createdAt: new Date() },
      }),
    )
    await db.insert<QueuedMessageRow>(db.tables.queuedMessages, queuedMessageColumns, rows)
    const [first, last] = rows
    const others = Array.from({ length: MANY }, () => ({ id: uuid() }))
    const queued = [first, ...others, last].filter((one) => one !== undefined)
    statements.length = 0
    expect(await db.transaction((transaction) => deleteQueued(db, queued, transaction))).to.equal(2)
    expect(Math.max(...statements.map(({ length }) => length))).to.be.below(20_000)
    expect(await mill.models.QueuedMessage.count({ where: { chatId } })).to.equal(0)
  })
})
