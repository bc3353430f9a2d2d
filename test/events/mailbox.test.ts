import { expect } from 'chai'
import { Mailbox, MOST_WAITING } from '../../src/events/mailbox.ts'
import { lookOf } from './rows.ts'

const entry = (id: number) => ({ id: `${id}-0`, claimToken: 1, number: id, event: null })

describe('the mailbox of a reader', () => {
  it('gives what came, in order, also to one who came first', async () => {
    const mailbox = new Mailbox()
    const first = mailbox.take()
    for (const id of [1, 2]) mailbox.push(entry(id))
    expect([await first, await mailbox.take()]).to.deep.equal([1, 2].map((id) => ({ kind: 'entry', entry: entry(id) })))
  })

  it('holds so many entries and no more: then it is empty, and takes nothing', async () => {
    const mailbox = new Mailbox()
    for (let id = 0; id < MOST_WAITING; id++) expect(mailbox.push(entry(id))).to.equal(true)
    expect(mailbox.size).to.equal(MOST_WAITING)
    for (const id of [1, 2, 3]) expect(mailbox.push(entry(id))).to.equal(false)
    expect(mailbox.size).to.equal(0)
    expect(await mailbox.take()).to.deep.equal({ kind: 'behind' })
  })

  it('forgets a silence that something has broken', async () => {
    const mailbox = new Mailbox()
    mailbox.silence(lookOf())
    mailbox.push(entry(1))
    mailbox.silence(lookOf())
    expect(await mailbox.take()).to.deep.equal({ kind: 'entry', entry: entry(1) })
    mailbox.silence(null)
    expect(await mailbox.take()).to.deep.equal({ kind: 'silence', look: null })
  })

  it('ends for good, whatever waits', async () => {
    const mailbox = new Mailbox()
    mailbox.push(entry(1))
    mailbox.end()
    mailbox.leaveBehind()
    expect([await mailbox.take(), await mailbox.take()]).to.deep.equal([{ kind: 'ended' }, { kind: 'ended' }])
  })
})
