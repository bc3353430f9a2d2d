import { expect } from 'chai'
import { gate, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { agents } from './apps/clerk.ts'
import { useDesk } from './support/desk.ts'
import { useJobs } from './support/jobs.ts'
import { expectWhole, isAtRest, rowOf, transcriptOf } from './support/rows.ts'
import { useWorkers } from './support/workers.ts'

const LIMIT_MS = 240_000
const WAIT_MS = 60_000

onEachDatabase('A tool that blocks its process', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 4_000, sweepEveryMs: 1_000 })
  const workers = useWorkers()
  const desk = useDesk()
  const jobs = useJobs(() => bench.redis.url)
  const isLong = process.env.THREADMILL_FULL === '1' && kind.name === 'MariaDB'
  const blockMs = isLong ? 120_000 : 10_000

  it(`for ${blockMs / 1_000} s loses neither its own chat nor another one of that process, and writes once (E141)`, async () => {
    const [call, other] = [
      gate(toolCalls([{ name: 'block', arguments: { ms: blockMs } }])),
      gate(text('the other answer')),
    ]
    const model = await bench.script((request) => {
      if (request.messages[0]?.content === 'two') return other
      return request.messages.length === 1 ? call : text('done')
    })
    const mill = await bench.connect({ agents })
    const [one, two] = [await mill.chats.create({ agent: 'clerk' }), await mill.chats.create({ agent: 'clerk' })]
    const start = () => workers.start({ app: 'clerk', options: bench.options(), desk: desk().url })
    await start()
    await one.askLater('one', { enqueue: true })
    await two.askLater('two', { enqueue: true })
    await other.reached
    await call.reached
    // From here on somebody stands ready to take whatever is let go.
    await start()
    call.release()
    await desk().visit('block')
    // The answer to the other chat comes while nobody in its process can hear it.
    other.release()
    await until(
      'both chats are given back',
      async () => (await isAtRest(one)) && (await isAtRest(two)),
      blockMs + WAIT_MS,
    )
    expect(await transcriptOf(one)).to.eql(['U one', 'A[block]', 'T(block) succeeded', 'A done'])
    expect(await transcriptOf(two)).to.eql(['U two', 'A the other answer'])
    expect(desk().of('block')).to.have.length(1)
    expect([(await rowOf(mill, one)).claimToken, (await rowOf(mill, two)).claimToken]).to.eql([1, 1])
    expect(model.requests).to.have.length(3)
    expect(await jobs().failed()).to.equal(0)
    await expectWhole(mill, one)
    await expectWhole(mill, two)
  }).timeout(LIMIT_MS)
})
