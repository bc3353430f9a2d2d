import { expect } from 'chai'
import { type ClaimKey, fence, takeChat } from '../../models/claims.ts'
import { ClaimLostError } from '../../src/index.ts'
import { rejectionOf } from '../chat/support/watching.ts'
import { onEachDatabase } from '../support/databases.ts'
import { insidesOf } from '../support/insides.ts'
import { useBench } from '../support/mills.ts'

onEachDatabase('An update that rests on what is stored', (kind) => {
  const bench = useBench(kind)

  /** A chat that this process holds, and a second connection. */
  async function held() {
    const [mill, second] = [await bench.connect(), await bench.connect()]
    const chat = await mill.chats.create()
    const key: ClaimKey = { chatId: chat.id, claimId: 'claim-of-the-first' }
    const take = { ...key, ttlMs: 60_000, reason: 'verb' as const, deathsBelow: null, agents: [] }
    expect(await takeChat(insidesOf(mill).db, take)).to.not.equal(null)
    return { mill, chat, key, db: insidesOf(mill).db, other: insidesOf(second).db }
  }

  it('counts rows as found, so that writing what is there already is no loss (B75)', async () => {
    const { mill, chat, key, db } = await held()
    const { Chat } = mill.models
    const claimedUntil = new Date(Date.now() + 60_000)
    for (let times = 0; times < 3; times++) {
      const [found] = await Chat.update({ claimedUntil }, { where: { id: chat.id }, silent: true })
      expect(found).to.equal(1)
    }
    const sameTick = [1, 2, 3, 4, 5].map(() => db.transaction((transaction) => fence(db, transaction, key)))
    expect(await Promise.all(sameTick)).to.deep.equal([true, true, true, true, true])
    expect((await Chat.update({ claimedUntil }, { where: { id: 'nobody' } }))[0]).to.equal(0)
  })

  it('sees a claim that was taken over after the transaction had read, before it writes (B75)', async () => {
    const { chat, key, db, other, mill } = await held()
    const claimant = `SELECT claimed_by AS holder FROM ${db.tables.chats} WHERE id = $id`
    const takeOver = () =>
      other.write(
        `UPDATE ${db.tables.chats} SET claimed_by = 'claim-of-the-second', claim_token = claim_token + 1 WHERE id = $id`,
        {
          id: chat.id,
        },
      )
    const insert = async () => {
      let takingOver: Promise<unknown> = Promise.resolve()
      await db
        .transaction(async (transaction) => {
          expect(await db.read(claimant, { id: chat.id }, transaction)).to.deep.equal([{ holder: key.claimId }])
          takingOver = takeOver()
          // A transaction of SQLite is the only writer: the takeover waits until it is over.
          if (kind.name !== 'SQLite') await takingOver
          await fence(db, transaction, key, { messages: 1 })
          await db.write(
            `INSERT INTO ${db.tables.messages} (id, chat_id, position, role, created_at, updated_at) ` +
              `VALUES ($id, $id, 0, 'user', ${db.dialect.now}, ${db.dialect.now})`,
            { id: chat.id },
            transaction,
          )
        })
        .finally(() => takingOver)
    }
    const written = () => mill.models.Message.count({ where: { chatId: chat.id } })
    if (kind.name === 'SQLite') {
      await insert()
      expect(await written(), 'before the takeover').to.equal(1)
      const again = db.transaction((transaction) => fence(db, transaction, key, { messages: 1 }))
      expect(await rejectionOf(again)).to.be.instanceOf(ClaimLostError)
    } else {
      expect(await rejectionOf(insert())).to.be.instanceOf(ClaimLostError)
      expect(await written()).to.equal(0)
    }
    const [row] = await db.read(claimant, { id: chat.id })
    expect(row?.holder).to.equal('claim-of-the-second')
  })
})
