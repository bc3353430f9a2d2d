import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect } from 'chai'
import { greeter } from '../../examples/nest/agents.ts'
import { gate, text } from '../../src/testing/index.ts'
import { environmentOf } from '../cli/run-cli.ts'
import { sqlite } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'

const WAIT_MS = 60_000
const main = join(import.meta.dirname, '../../examples/nest/main.ts')

describe('The Nest example', function () {
  this.timeout(240_000)
  // Far longer than the test: a chat that is taken up again was given back, not left to lapse.
  const bench = useBench(sqlite, { claimTtlMs: 60_000 })
  let child: ChildProcess | undefined
  afterEach(async () => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  })

  it('answers chats, and at SIGTERM hands the one that runs to another worker and exits with 0', async () => {
    const held = gate(text('never whole'))
    await bench.script([text('Good morning.'), held, text('Good evening.')])
    const mill = await bench.connect({ agents: [greeter] })
    const env = { ...process.env, ...environmentOf(bench.options()), THREADMILL_SHUTDOWN_GRACE_MS: '300' }
    const started = spawn(process.execPath, ['--import', 'tsx', main], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    child = started
    let output = ''
    for (const stream of [started.stdout, started.stderr]) stream.on('data', (data) => (output += String(data)))
    const ended = once(started, 'exit')
    await until('it is ready', () => output.includes('ready\n') || started.exitCode !== null, WAIT_MS)
    expect(output).to.match(/ready\n/)

    const chat = await mill.chats.create({ agent: greeter })
    await chat.askLater('Good morning', { enqueue: true })
    await until('the answer', async () => (await chat.isComplete()) && !(await chat.running()), WAIT_MS)
    await chat.askLater('Good evening', { enqueue: true })
    await held.reached
    started.kill('SIGTERM')
    expect(await ended, output).to.deep.equal([0, null])
    expect(await chat.running()).to.equal(false)

    mill.startWorkers({ complete: 1, runTools: 0, compact: 0 })
    await until('the next worker answers', () => chat.isComplete(), WAIT_MS)
    const answers = (await chat.messages()).filter(({ role }) => role === 'assistant')
    expect(answers.map(({ content }) => content)).to.deep.equal(['Good morning.', 'Good evening.'])
  })
})
