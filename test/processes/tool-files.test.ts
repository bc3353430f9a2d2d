import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { agents } from './apps/clerk.ts'
import { useDesk } from './support/desk.ts'
import { expectWhole, isAtRest, transcriptOf } from './support/rows.ts'
import { type DeathAt, statements, useWorkers } from './support/workers.ts'

const LIMIT_MS = 120_000
const WAIT_MS = 40_000
const { startsCall, linksResult } = statements

onEachDatabase('A worker killed at a tool that attaches files', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 2_500 })
  const workers = useWorkers()
  const desk = useDesk()
  let dataDir = ''
  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'threadmill-killed-files-'))
  })
  after(() => rm(dataDir, { recursive: true }))
  const worker = (dieAt?: DeathAt) =>
    workers.start({
      app: 'clerk',
      options: { ...bench.options(), dataDir, counts: { complete: 2 } },
      desk: desk().url,
      ...(dieAt === undefined ? {} : { dieAt }),
    })
  const kept = async () =>
    (await readdir(join(dataDir, 'blobs'), { recursive: true })).filter((name) => /[0-9a-f]{64}$/.test(name))

  it('before its result is stored leaves bytes that are purged, and the next one’s are the result’s (E81)', async () => {
    await bench.script([toolCalls([{ name: 'draw', id: 'call_draw', arguments: {} }]), text('done')])
    const mill = await bench.connect({ agents, dataDir })
    const chat = await mill.chats.create({ agent: 'artist' })
    await chat.askLater('Draw', { enqueue: true })
    await (await worker([startsCall, linksResult])).ended
    expect(await transcriptOf(chat)).to.eql(['U Draw', 'A[draw]'])
    expect(await kept()).to.have.length(1)
    await worker()
    await until('the chat is given back', () => isAtRest(chat), WAIT_MS)
    await expectWhole(mill, chat)
    const [first, second] = desk().visits
    expect(first?.pid).to.not.equal(second?.pid)
    expect(first?.key).to.equal(second?.key)
    const files = (await chat.messages()).flatMap(({ attachments }) => attachments ?? [])
    const texts = await Promise.all(files.map(async (one) => Buffer.from(await one.bytes()).toString()))
    expect(texts).to.eql([`drawn by ${second?.pid}`])
    expect(await kept()).to.have.length(2)
    expect(await mill.purgeAttachments({ unusedForMs: 0 })).to.equal(1)
    expect(await kept()).to.have.length(1)
  }).timeout(LIMIT_MS)
})
