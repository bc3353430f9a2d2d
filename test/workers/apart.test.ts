import { expect } from 'chai'
import { Places } from '../../workers/apart.ts'
import type { JobOutcome } from '../../workers/job.ts'

/** Work that goes on until it is told to end. */
function work() {
  let end: (outcome: JobOutcome) => void = () => {}
  const came = new Promise<JobOutcome>((resolve) => {
    end = resolve
  })
  return { end, begin: () => came }
}

describe('The places of chats that run alone', () => {
  const chat = (chatId: string) => ({ chatId, queue: 'complete' as const })
  const none = () => Promise.reject(new Error('it was begun'))

  it('are so many, and who finds none is rung for when one is left, one at a time (E121)', async () => {
    const rung: string[] = []
    const places = new Places(2, async (chatId) => void rung.push(chatId))
    const [one, two] = [work(), work()]
    const running = [places.use(chat('one'), one.begin), places.use(chat('two'), two.begin)]
    expect(await places.use(chat('three'), none)).to.equal('runs alone later')
    expect(await places.use(chat('four'), none)).to.equal('runs alone later')
    expect(await places.use(chat('three'), none)).to.equal('runs alone later')
    expect(rung).to.eql([])
    one.end('done')
    expect(await running[0]).to.equal('done')
    expect(rung).to.eql(['three'])
    two.end('waiting')
    expect(await running[1]).to.equal('waiting')
    expect(rung).to.eql(['three', 'four'])
    expect(await places.use(chat('five'), async () => 'done')).to.equal('done')
    expect(rung).to.have.length(2)
  })

  it('are one for each chat, however often it is rung for, and free again after what throws (E121)', async () => {
    const places = new Places(1, async () => {})
    const one = work()
    const running = places.use(chat('one'), one.begin)
    expect(await places.use(chat('one'), none)).to.equal('claimed elsewhere')
    one.end('died alone')
    expect(await running).to.equal('died alone')
    expect(await places.use(chat('one'), none).catch((error: Error) => error.message)).to.equal('it was begun')
    expect(await places.use(chat('one'), async () => 'done')).to.equal('done')
  })

  it('ring for nobody once the process closes (E127)', async () => {
    const rung: string[] = []
    const places = new Places(1, async (chatId) => void rung.push(chatId))
    const one = work()
    const running = places.use(chat('one'), one.begin)
    await places.use(chat('two'), none)
    places.close()
    one.end('handed over')
    await running
    expect(rung).to.eql([])
  })
})
