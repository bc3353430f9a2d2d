import { expect } from 'chai'
import type { Chat, Threadmill } from '../../src/index.ts'
import { type LoggedRequest, text, toolCalls } from '../../src/testing/index.ts'
import { environmentOf, runCli } from '../cli/run-cli.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { agents } from './apps/poison.ts'
import { useDesk } from './support/desk.ts'
import { lapse } from './support/lapse.ts'
import { allAtRest } from './support/load.ts'
import { expectWhole, isAtRest, rowOf, transcriptOf } from './support/rows.ts'
import { useWorkers, type WorkerProcess } from './support/workers.ts'

const NEIGHBOURS = 49
const LIMIT_MS = 90_000

/** Has the tool of the chat's agent called in each turn, and then answers. */
function answers({ messages, tools }: LoggedRequest) {
  if (messages.at(-1)?.role === 'tool') return text('done')
  return toolCalls([{ name: tools[0]?.function.name ?? '', arguments: {} }])
}

onEachDatabase('A chat that kills its processes', (kind) => {
  // Claims outlive every pause of a busy machine: those of dead processes are made to lapse.
  const bench = useBench(kind, { claimTtlMs: 30_000 })
  const workers = useWorkers()
  const desk = useDesk()
  const start = () =>
    workers.start({
      app: 'poison',
      options: { ...bench.options(), counts: { complete: NEIGHBOURS + 1 }, isolates: true },
      desk: desk().url,
    })
  const ask = async (mill: Threadmill, agent: string) => {
    const chat = await mill.chats.create({ agent })
    await chat.askLater('go', { enqueue: true })
    return chat
  }
  const burst = (nth: number) => until(`visit ${nth} of the poison`, () => desk().of('burst')[nth - 1], LIMIT_MS)
  const visitsOf = ({ id }: Chat) => desk().visits.filter(({ chatId }) => chatId === id)

  it('is run alone after two of them, set aside after five, and costs its neighbours nothing more (E120, E121, E123, E125)', async () => {
    await bench.script(answers)
    const mill = await bench.connect({ agents })
    desk().hold('work')
    desk().hold('burst')
    const allWork = (workerProcess: WorkerProcess) =>
      until(
        'all of them run',
        () =>
          desk()
            .of('work')
            .filter(({ pid }) => pid === workerProcess.pid).length === NEIGHBOURS,
        LIMIT_MS,
      )
    const first = await start()
    const neighbours = await Promise.all(Array.from({ length: NEIGHBOURS }, () => ask(mill, 'neighbour')))
    const [unlucky, ...others] = neighbours
    if (unlucky === undefined) throw new Error('there are no neighbours')
    const poison = await ask(mill, 'poison')
    const ids = [...neighbours, poison].map(({ id }) => id)
    await allWork(first)
    ;(await burst(1)).answer('is killed')
    expect(await first.ended).to.equal(null)
    await lapse(mill, bench.redis.url, ids)

    const second = await start()
    await allWork(second)
    for (const visit of desk().of('work')) if (visit.chatId !== unlucky.id) visit.answer('worked')
    await allAtRest(others, LIMIT_MS)
    ;(await burst(2)).answer('is killed')
    expect(await second.ended).to.equal(null)
    await lapse(mill, bench.redis.url, ids)

    const third = await start()
    desk().release('work')
    await until('the unlucky one is answered', () => isAtRest(unlucky), LIMIT_MS)
    for (const nth of [3, 4, 5]) {
      const visit = await burst(nth)
      const { deaths, why } = await poison.diagnosis()
      expect(deaths).to.equal(nth - 1)
      expect(why).to.include('one that runs no other such chat')
      visit.answer(nth === 4 ? 'exits' : 'is killed')
      await until('its death is noted', async () => (await rowOf(mill, poison)).lastDeath, LIMIT_MS)
      await lapse(mill, bench.redis.url, [poison.id])
    }
    const failure = await until('it is set aside', () => poison.failure(), LIMIT_MS)
    expect(failure).to.include({ code: 'chat.quarantined', turn: 1 })
    expect(failure.message).to.match(/^5 processes died .* ended with signal SIGKILL/)
    expect(await rowOf(mill, poison)).to.include({ deaths: 5, claimedBy: null, wantedAt: null })
    const pids = desk()
      .of('burst')
      .map(({ pid }) => pid)
    expect(pids).to.have.length(5)
    expect(pids.slice(0, 2)).to.eql([first.pid, second.pid])
    expect(new Set([...pids, third.pid]).size, 'each in a process of its own').to.equal(6)
    expect(visitsOf(unlucky)[2]?.pid, 'the unlucky one alone, too').to.not.be.oneOf([...pids, third.pid])
    for (const chat of neighbours) {
      expect(await transcriptOf(chat)).to.eql(['U go', 'A[work]', 'T(work) succeeded', 'A done'])
      expect(await rowOf(mill, chat)).to.include({ deaths: 0, failure: null })
      expect(visitsOf(chat)).to.have.length(chat === unlucky ? 3 : 2)
      expect(new Set(visitsOf(chat).map(({ key }) => key)).size).to.equal(1)
      await expectWhole(mill, chat)
    }

    const env = environmentOf(bench.options())
    const status = await runCli(['status', poison.id, '--exit-code'], { env })
    expect(status.code).to.equal(1)
    expect(status.out)
      .to.match(/failure +chat\.quarantined/)
      .and.to.include(`threadmill retry ${poison.id}`)
    const overview = await runCli(['status'], { env })
    expect(overview.out).to.include('1 of those that failed killed their processes.')
    const retried = await runCli(['retry', poison.id], { env })
    expect(retried.out).to.include('failed with chat.quarantined; runs again')
    const cured = await burst(6)
    expect(cured.pid, 'it has committed no move yet, so it still runs alone').to.not.be.oneOf([...pids, third.pid])
    cured.answer('survives')
    await until('it answers', () => isAtRest(poison), LIMIT_MS)
    expect(await rowOf(mill, poison)).to.include({ deaths: 0, failure: null })
    await poison.askLater('again', { enqueue: true })
    const healthy = await burst(7)
    expect(healthy.pid, 'it is as any other').to.equal(third.pid)
    healthy.answer('survives')
    await until('it answers again', () => isAtRest(poison), LIMIT_MS)
    await expectWhole(mill, poison)
  }).timeout(3 * LIMIT_MS)
})
