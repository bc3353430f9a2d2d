import { expect } from 'chai'
import { onEachDatabase } from '../support/databases.ts'
import { insidesOf } from '../support/insides.ts'
import { useBench } from '../support/mills.ts'

onEachDatabase('A process that is blocked for longer than a claim lives', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 1_500 })

  it('knows at once that its thread has kept the claim, before its event loop has turned (E141)', async () => {
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    const taken = await insidesOf(mill).ports.claims.take(chat.id, 'verb', null)
    if (taken.kind !== 'held') throw new Error('The chat was not taken')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3_000)
    expect(() => taken.claim.requireTime()).to.not.throw()
    expect(taken.claim.signal.aborted).to.equal(false)
    expect(await chat.running()).to.equal(true)
    await taken.claim.end()
  })

  it('knows at once that the claim is lost, too (E141)', async () => {
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    const taken = await insidesOf(mill).ports.claims.take(chat.id, 'verb', null)
    if (taken.kind !== 'held') throw new Error('The chat was not taken')
    await mill.models.Chat.update({ claimedUntil: new Date(Date.now() - 1_000) }, { where: { id: chat.id } })
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3_000)
    expect(() => taken.claim.requireTime()).to.throw('no longer holds')
    expect(taken.claim.signal.aborted).to.equal(true)
    await taken.claim.end()
  })
})
