import { PassThrough } from 'node:stream'
import { expect } from 'chai'
import { gate, text } from '../../src/testing/index.ts'
import { environmentOf, startCli } from '../cli/run-cli.ts'
import { sqlite } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { kill, useWorkers } from './support/workers.ts'

const limitMs = 60_000

describe('A worker that is killed during threadmill chat', function () {
  this.timeout(180_000)
  const bench = useBench(sqlite, { claimTtlMs: 3_000 })
  const workers = useWorkers()

  it('is replaced by another: the viewer is told that the answer starts anew, and ends with what is stored', async () => {
    const held = gate(text('Half of an answer'))
    await bench.script([held, text('The whole answer.')])
    const options = { ...bench.options(), counts: { complete: 1, runTools: 0 } }
    const first = await workers.start({ app: 'load', options })
    const stdin = new PassThrough()
    const chat = startCli(['chat', '--agent', 'load'], { env: environmentOf(bench.options()), stdin })
    stdin.write('tell me\n')
    await held.reached
    for (const _ of ['Half', ' of', ' an']) await held.step()
    await until('the beginning is shown', () => chat.out().includes('Half of'), limitMs)
    const second = await workers.start({ app: 'load', options })
    await kill(first)
    await until('it goes on by itself', () => chat.out().includes('run finished'), limitMs)
    stdin.end()
    const { code, out } = await chat.ended
    expect(code).to.equal(0)
    expect(out).to.match(/Half of[\s\S]*· the answer broke off and starts anew[\s\S]*\nThe whole answer\.\n/)
    const mill = await bench.connect()
    const stored = await (await mill.chats.find(/chat ([\w-]{36})/.exec(out)?.[1] ?? '')).messages()
    expect(stored.map(({ role, content }) => [role, content])).to.deep.equal([
      ['user', 'tell me'],
      ['assistant', 'The whole answer.'],
    ])
    expect(second.output()).to.include('READY')
  })
})
