import { expect } from 'chai'
import type { Chat } from '../../src/index.ts'
import { gate, text } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { newPage } from '../support/page.ts'
import { until } from '../support/until.ts'
import { useJobs } from './support/jobs.ts'
import { expectWhole, isAtRest, rowOf, transcriptOf, usagesOf } from './support/rows.ts'
import { useWorkers } from './support/workers.ts'

const LIMIT_MS = 120_000
const WAIT_MS = 40_000
/** In CI the numbers of the report; else the same in less time. */
const [GRACE_MS, REST_MS] = process.env.THREADMILL_FULL === '1' ? [5_000, 2_000] : [1_500, 500]
/** What a busy machine may take to end a process whose time is up. */
const SLACK_MS = 3_000

/** A page that is open at the chat until its run has finished, and every text that it showed on the way. */
async function readPage(chat: Chat): Promise<{ readonly shown: readonly string[]; readonly types: readonly string[] }> {
  const page = newPage()
  const shown: string[] = []
  for await (const event of chat.events({ after: '0' })) {
    page.show(event)
    shown.push([...page.texts.values()].join(' | '))
    if (event.type === 'run.finished') break
  }
  return { shown, types: page.types }
}

onEachDatabase(`A worker with ${GRACE_MS} ms of grace that gets SIGTERM`, (kind) => {
  // Longer than any test: what others go on with was given back, not left to lapse. So is the lock of a job, with 30 s.
  const bench = useBench(kind, { claimTtlMs: 60_000, shutdownGraceMs: GRACE_MS })
  const workers = useWorkers()
  const jobs = useJobs(() => bench.redis.url)
  const worker = () => workers.start({ app: 'clerk', options: bench.options() })

  it('shortly before the end of an answer completes it, takes nothing new, and exits with 0 (B46)', async () => {
    const model = await bench.script([text('The Rhine is long', { delayMs: REST_MS }), text('second')])
    const mill = await bench.connect()
    const [chat, next] = [await mill.chats.create(), await mill.chats.create()]
    const reading = readPage(chat)
    const first = await worker()
    await chat.askLater('Name a river', { enqueue: true })
    await model.waitForRequests(1)
    const begun = performance.now()
    first.signal('SIGTERM')
    await until('it is closing', () => first.output().includes('CLOSING'))
    await next.askLater('hi', { enqueue: true })
    expect(await first.ended).to.equal(0)
    expect(performance.now() - begun).to.be.lessThan(GRACE_MS + SLACK_MS)
    expect(await transcriptOf(chat)).to.eql(['U Name a river', 'A The Rhine is long'])
    expect((await usagesOf(mill, chat)).map(({ status }) => status)).to.eql(['succeeded'])
    expect(await transcriptOf(next), 'what came after SIGTERM').to.eql(['U hi'])
    expect(model.requests.map(({ ended }) => ended)).to.eql(['answered'])
    expect(await jobs().active()).to.eql([])
    const { shown, types } = await reading
    expect(shown.every((part) => 'The Rhine is long'.startsWith(part.trim()))).to.equal(true)
    expect(types).to.not.include('attempt.restarted')
    const ready = performance.now()
    await worker()
    await model.waitForRequests(2)
    expect(performance.now() - ready, 'the next worker has the other chat').to.be.lessThan(3_000 + SLACK_MS)
    await until('the other chat is given back', () => isAtRest(next), WAIT_MS)
    await expectWhole(mill, chat)
  }).timeout(LIMIT_MS)

  it('long before it exits within the grace; another one starts within 3 s, and no page joins the texts (B46)', async () => {
    const held = gate(text('The Rhine is long', { chunks: 'words' }))
    const model = await bench.script([held, text('A quite other answer')])
    const mill = await bench.connect()
    const chat = await mill.chats.create()
    const reading = readPage(chat)
    const first = await worker()
    await chat.askLater('Name a river', { enqueue: true })
    const asked = await held.reached
    for (const _ of [1, 2]) await held.step()
    const second = await worker()
    const begun = performance.now()
    first.signal('SIGTERM')
    expect(await first.ended).to.equal(0)
    const exited = Date.now()
    expect(performance.now() - begun).to.be.within(GRACE_MS - 500, GRACE_MS + SLACK_MS)
    expect(await model.waitForEnd(asked)).to.equal('aborted')
    const left = (await jobs().active()).map(({ processedBy }) => processedBy ?? '')
    expect(left.filter((name) => name.endsWith(`:${first.pid}`))).to.eql([])
    const again = (await model.waitForRequests(2))[1]
    expect((again?.startedAt ?? Number.NaN) - exited).to.be.lessThan(3_000)
    await until('the chat is given back', () => isAtRest(chat), WAIT_MS)
    expect(await transcriptOf(chat)).to.eql(['U Name a river', 'A A quite other answer'])
    expect((await usagesOf(mill, chat)).map(({ status }) => status)).to.eql(['cancelled', 'succeeded'])
    expect((await rowOf(mill, chat)).claimToken, 'runs').to.equal(2)
    const { shown, types } = await reading
    expect(types.filter((type) => type === 'attempt.restarted')).to.have.length(1)
    // The page went from the one text to the other, and never held both.
    expect(shown.some((part) => part.startsWith('The'))).to.equal(true)
    for (const part of shown) {
      const whole = ['The Rhine is long', 'A quite other answer'].some((answer) => answer.startsWith(part.trim()))
      expect(whole, `the page showed: ${part}`).to.equal(true)
    }
    expect(shown.at(-1)).to.equal('A quite other answer')
    second.signal('SIGTERM')
    expect(await second.ended).to.equal(0)
    await expectWhole(mill, chat)
  }).timeout(LIMIT_MS)
})
