import { expect } from 'chai'
import { CancelWatch } from '../../src/claims/cancel-watch.ts'
import { until } from '../support/until.ts'

const everyMs = 5

describe('The watch for cancelled turns', () => {
  let looks: string[][] = []
  let cancelled: string[] = []
  let broken = 0
  let troubles = 0
  let watch = open()

  function open(): CancelWatch {
    return new CancelWatch(
      async (chatIds) => {
        looks.push([...chatIds])
        if (broken > 0) {
          broken--
          throw new Error('the database is away')
        }
        return cancelled.filter((id) => chatIds.includes(id))
      },
      everyMs,
      () => troubles++,
    )
  }

  beforeEach(() => {
    looks = []
    cancelled = []
    broken = 0
    troubles = 0
    watch = open()
  })
  afterEach(() => watch.close())

  const looksMore = async (than: number) => until('another look', () => looks.length > than)

  it('looks with one statement for all chats, and tells only those that were cancelled', async () => {
    const told: string[] = []
    for (const id of ['a', 'b', 'c']) watch.watch(id, () => told.push(id))
    await looksMore(0)
    expect(looks[0]).to.eql(['a', 'b', 'c'])
    expect(told).to.eql([])
    cancelled = ['b']
    await until('b is told', () => told.length > 0)
    expect(told).to.eql(['b'])
  })

  it('tells each watcher of a chat once, however long the cancel stands', async () => {
    const told: string[] = []
    cancelled = ['a']
    watch.watch('a', () => told.push('first'))
    watch.watch('a', () => told.push('second'))
    await until('both are told', () => told.length === 2)
    await looksMore(looks.length + 2)
    expect(told).to.eql(['first', 'second'])
    watch.watch('a', () => told.push('third'))
    await until('a later watcher is told too', () => told.length === 3)
  })

  it('tells nobody who has gone, and stops looking with the last of them', async () => {
    const told: string[] = []
    const unwatch = watch.watch('a', () => told.push('a'))
    const keep = watch.watch('b', () => told.push('b'))
    unwatch()
    unwatch()
    cancelled = ['a', 'b']
    await until('b is told', () => told.includes('b'))
    expect(told).to.eql(['b'])
    expect(looks.flat()).not.to.include('a')
    keep()
    const before = looks.length
    const other = open()
    other.watch('x', () => {})
    await until('time enough for the watch that is closed', () => looks.length >= before + 3)
    other.close()
    expect(looks.slice(before).every((ids) => ids.includes('x'))).to.equal(true)
  })

  it('looks on after an error of the database', async () => {
    let told = 0
    broken = 2
    cancelled = ['a']
    watch.watch('a', () => told++)
    await until('it is told after all', () => told > 0)
    expect(troubles).to.equal(2)
  })
})
