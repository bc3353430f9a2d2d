import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect } from 'chai'
import type { Chat, Threadmill } from '../../src/index.ts'
import { gate, text, toolCalls } from '../../src/testing/index.ts'
import { change } from '../chat/support/rows.ts'
import { environmentOf } from '../cli/run-cli.ts'
import { bundle } from '../support/bundle.ts'
import { sqlite } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { agents } from './apps/poison.ts'
import { useDesk } from './support/desk.ts'
import { lapse } from './support/lapse.ts'
import { isAtRest, rowOf } from './support/rows.ts'

const LIMIT_MS = 60_000
const app = `${import.meta.dirname}/apps/poison.ts`

describe('A process of one chat alone', function () {
  this.timeout(3 * LIMIT_MS)
  const bench = useBench(sqlite, { claimTtlMs: 30_000 })
  const desk = useDesk()
  let children: ChildProcess[] = []
  afterEach(async () => {
    for (const child of children.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)) {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    }
    children = []
  })

  async function worker(...argv: string[]) {
    const { program, worker: apps } = await bundle()
    const file = apps(app)[1] ?? ''
    const child = spawn(process.execPath, [program('only-process.ts'), 'worker', '--app', file, ...argv], {
      env: {
        ...process.env,
        ...environmentOf(bench.options()),
        THREADMILL_SHUTDOWN_GRACE_MS: '500',
        THREADMILL_TEST_DESK: desk().url,
      },
    })
    children.push(child)
    let out = ''
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (part: Buffer) => (out += part.toString()))
    const ended = once(child, 'exit').then(([code, signal]) => (signal ?? code) as string | number)
    return { child, ended, out: () => out }
  }
  beforeEach(async () => {
    const mill = await bench.connect()
    await mill.models.Chat.destroy({ where: {} })
  })
  async function asked(mill: Threadmill, deaths: number): Promise<Chat> {
    const chat = await mill.chats.create({ agent: 'poison' })
    await chat.askLater('go', { enqueue: true })
    await change(mill.models.Chat, chat.id, { deaths })
    return chat
  }
  const isThere = (pid: number) => {
    try {
      return process.kill(pid, 0)
    } catch {
      return false
    }
  }

  it('ends after its parent, even where a tool blocks it for ever, and its chat is found dead (E121, E127)', async () => {
    await bench.script(toolCalls([{ name: 'burst', arguments: {} }]))
    const mill = await bench.connect({ agents })
    desk().hold('burst')
    const [hears, blocks] = [await asked(mill, 2), await asked(mill, 2)]
    const { child, out } = await worker()
    const visitOf = ({ id }: Chat) =>
      until('its tool runs', () => desk().visits.find(({ chatId }) => chatId === id), LIMIT_MS)
    const [heard, blocked] = [await visitOf(hears), await visitOf(blocks)]
    expect(new Set([heard.pid, blocked.pid, child.pid]).size).to.equal(3)
    expect(out()).to.match(/"event":"alone.started","chatId":"[^"]+","queue":"complete","deaths":2,"pid":\d+/)
    blocked.answer('blocks')
    child.kill('SIGKILL')
    await until('the one that hears of it ends', () => !isThere(heard.pid), LIMIT_MS)
    expect(await rowOf(mill, hears)).to.include({ claimedBy: null, deaths: 0, failure: null })
    await until('the one that does not is ended', () => !isThere(blocked.pid), LIMIT_MS)
    expect((await rowOf(mill, blocks)).claimedBy).to.be.a('string')
  })

  it('gives the chat back when its parent is asked to stop, and counts no death (E127)', async () => {
    await bench.script(toolCalls([{ name: 'burst', arguments: {} }]))
    const mill = await bench.connect({ agents })
    desk().hold('burst')
    const chat = await asked(mill, 3)
    const { child, ended, out } = await worker()
    const { pid } = await desk().visit('burst')
    child.kill('SIGTERM')
    expect(await ended, out()).to.equal(0)
    expect(isThere(pid)).to.equal(false)
    const row = await rowOf(mill, chat)
    expect(row).to.include({ claimedBy: null, deaths: 0, failure: null })
    expect(row.wantedAt).to.be.instanceOf(Date)
  })

  it('is one of an operator, too: it runs that chat and no other, dies of what nobody catches, and ends (E126, E127)', async () => {
    const held = gate(text('done'))
    await bench.script([toolCalls([{ name: 'burst', arguments: {} }]), held])
    const mill = await bench.connect({ agents })
    desk().hold('burst')
    const [chat, other] = [await asked(mill, 0), await asked(mill, 0)]
    const first = await worker('--only', chat.id)
    ;(await desk().visit('burst')).answer('throws')
    expect(await first.ended, first.out()).to.equal(1)
    expect(first.out()).to.include('nobody catches this')
    expect((await rowOf(mill, chat)).claimedBy).to.be.a('string')
    await lapse(mill, bench.redis.url, [chat.id])
    const second = await worker('--only', chat.id)
    ;(await desk().visit('burst', 2)).answer('survives')
    held.release()
    expect(await second.ended, second.out()).to.equal(0)
    expect(await isAtRest(chat)).to.equal(true)
    expect((await rowOf(mill, other)).claimToken).to.equal(0)
    const third = await worker('--only', chat.id, '--complete', '1')
    expect(await third.ended).to.equal(2)
    expect(third.out()).to.include('--only runs one chat')
  })
})
