import { expect } from 'chai'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { startProxy, type TcpProxy } from '../support/proxy.ts'
import { agents } from './apps/busy.ts'
import { allAtRest, askAll, expectAnswered, loadModel, makeChats, report } from './support/load.ts'
import { rowOf } from './support/rows.ts'
import { useWorkers } from './support/workers.ts'

const CHATS = 8
/** What each statement takes, and what one in fifty takes at most, in ms. */
const USUAL_MS = 150
const LONGEST_MS = 1_000

onEachDatabase('Two workers whose event loops lag', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 4_000, sweepEveryMs: 1_000 })
  const workers = useWorkers()
  let proxy: TcpProxy | undefined
  afterEach(() => proxy?.close())

  /** SQLite has nothing in between that could be slow. */
  const databaseUrl = async (): Promise<string> => {
    if (kind.name === 'SQLite') return bench.database.url
    const url = new URL(bench.database.url)
    proxy = await startProxy(Number(url.port), () => (Math.random() < 0.02 ? Math.random() * LONGEST_MS : USUAL_MS))
    url.port = String(proxy.port)
    return url.href
  }

  const slow = kind.name === 'SQLite' ? '' : ', and whose database takes 0.15 s for a statement, now and then 1 s,'
  it(`each with tools that block it again and again${slow} lose no claim of 4 s (E142)`, async () => {
    const model = await bench.script(loadModel({ rounds: 1, latencyMs: 100 }))
    const mill = await bench.connect({ agents })
    const chats = await makeChats(mill, CHATS)
    const options = { ...bench.options(), databaseUrl: await databaseUrl(), counts: { complete: 4, runTools: 0 } }
    await Promise.all([0, 1].map(() => workers.start({ app: 'busy', options })))
    const begun = performance.now()
    await askAll(chats, 0, CHATS)
    await allAtRest(chats, 120_000)
    const rows = await Promise.all(chats.map((chat) => rowOf(mill, chat)))
    report(
      `${CHATS} turns in ${((performance.now() - begun) / 1_000).toFixed(1)} s, ${proxy?.packets ?? 0} statements held back`,
    )
    expect(rows.map(({ claimToken }) => claimToken)).to.eql(rows.map(() => 1))
    expect(model.requests).to.have.length(2 * CHATS)
    await expectAnswered(mill, chats, 1)
  }).timeout(180_000)
})
