import { expect } from 'chai'
import * as z from 'zod'
import { defineAgent, defineTool, type Threadmill, type ToolContext } from '../../../src/index.ts'
import { text, toolCalls } from '../../../src/testing/index.ts'
import { sqlite } from '../../support/databases.ts'
import { useBench } from '../../support/mills.ts'
import { until } from '../../support/until.ts'
import { jsonLines } from '../run-cli.ts'
import { chatIn, useTypists } from './typists.ts'

const parameters = z.object({ order: z.string() })
const toolNamed = (name: string, execute: (order: string, context: ToolContext) => Promise<unknown>) =>
  defineTool({ name, description: 'Does it.', parameters, execute: ({ order }, context) => execute(order, context) })

const ship = toolNamed('ship', async (order, { ask }) => {
  const { street, size } = await ask({
    message: `Where to with order ${order}?`,
    fields: [
      { name: 'street', title: 'Street and number' },
      { name: 'size', choices: ['S', 'M'], default: 'M' },
    ],
  })
  const { name } = await ask({ message: 'For whom?', fields: [{ name: 'name' }] })
  return `shipped ${order} in ${size} to ${name}, ${street}`
})
const wrap = toolNamed('wrap', async (order, { ask }) => {
  const [paper, ribbon] = await Promise.allSettled([
    ask({ key: 'paper', message: 'Which paper?', fields: [{ name: 'paper' }] }),
    ask({ key: 'ribbon', message: 'Which ribbon?', fields: [{ name: 'ribbon' }] }),
  ])
  const said = (one: PromiseSettledResult<unknown>) => (one.status === 'fulfilled' ? JSON.stringify(one.value) : 'none')
  return `wrapped ${order}: ${said(paper)}, ${said(ribbon)}`
})
const hurry = toolNamed('hurry', async (order, { ask }) => {
  const fields = [{ name: 'pace', default: 'slow' }]
  const { pace } = await ask({ message: 'How fast?', fields, expiresMs: 1_000, onExpired: 'default' })
  return `sent ${order}: ${pace}`
})

describe('What a chat waits for, in threadmill chat', function () {
  this.timeout(120_000)
  const bench = useBench(sqlite, { claimTtlMs: 30_000 })
  const start = useTypists(bench)
  let mill: Threadmill
  let percent: number

  const render = defineTool({
    name: 'render',
    description: 'Renders.',
    parameters,
    execute: (_args, { task }) => task({ id: 'job-7', pollMs: 1_000, message: 'queued' }),
    resume: (_task, { task }) =>
      percent < 100 ? task({ id: 'job-7', pollMs: 1_000, message: `${percent} %` }) : 'rendered',
  })
  const agent = defineAgent({ name: 'shop', tools: [ship, wrap, hurry, render], retries: 0 })

  async function startPool(...tools: string[]): Promise<void> {
    await bench.script([
      ...tools.map((name) => toolCalls([{ id: name, name, arguments: { order: '42' } }])),
      text('Done.'),
    ])
    mill = await bench.connect({ agents: [agent] })
    await mill.startWorkers({ complete: 2, runTools: 0, compact: 0 }).ready()
    percent = 40
  }

  it('is asked with its fields, asked again after a wrong answer, and goes on with the right one (E66)', async () => {
    await startPool('ship')
    const typist = start(['--agent', 'shop'])
    for (const line of ['ship it', 'Elm Street 5', '/answer {"street":5}', '/answer {"street":"Elm"}', 'Ann']) {
      typist.type(line)
    }
    typist.end()
    const { code, out } = await typist.ended
    expect(code, out).to.equal(0)
    expect(out).to.match(
      /┌─ ship asks\n│ Where to with order 42\?\n│ {3}street \(string, required\): Street and number\n│ {3}size \(string, one of "S", "M", default "M"\)\n/,
    )
    expect(out).to.include('ship waits for an answer: /answer {"street":"…","size":"M"} answers, /decline declines')
    // Once at first, and once after the answer that did not fit.
    expect(out.split('Where to with order 42?')).to.have.length(3)
    expect(out).to.match(/street must be a string[\s\S]*┌─ ship asks\n│ Where to with order 42\?[\s\S]*│ For whom\?/)
    expect(out).to.match(/succeeded ship: shipped 42 in M to Ann, Elm\n[\s\S]*Done\./)
    expect(out).not.to.include('somebody else')
  })

  it('is asked one question after the other, of which any can be answered or declined by its key (E66)', async () => {
    await startPool('wrap')
    const typist = start(['--agent', 'shop'], { tty: true })
    await typist.says('/help lists the commands')
    typist.type('/answer red')
    await typist.says('no question waits for an answer')
    typist.type('wrap it')
    await typist.says(/│ Which paper\?[\s\S]*after that wrap asks ribbon: Which ribbon\?/)
    await typist.says('answer › ')
    typist.type('/answer ribbon red')
    await typist.says('the question was answered')
    expect(typist.out()).not.to.include('│ Which ribbon?')
    typist.type('/decline bow')
    await typist.says('no question bow waits for an answer')
    typist.type('/decline')
    await typist.says('wrapped 42: none, {"ribbon":"red"}')
    await typist.says('Done.')
    expect(typist.out()).to.include('the question was declined')
  })

  it('is left open at the end of a pipe, which exits with 3, and asked of whoever joins (E66)', async () => {
    await startPool('wrap')
    const first = start(['--agent', 'shop'])
    first.type('wrap it')
    first.end()
    const parked = await first.ended
    expect(parked.code, parked.out).to.equal(3)
    const second = start([(await chatIn(mill, first)).id])
    for (const line of ['blue', 'red']) second.type(line)
    second.end()
    const { code, out } = await second.ended
    expect(code, out).to.equal(0)
    expect(out).to.match(
      /│ Which paper\?[\s\S]*│ Which ribbon\?[\s\S]*wrapped 42: \{"paper":"blue"\}, \{"ribbon":"red"\}/,
    )
  })

  it('is asked no longer once somebody else has answered, or the call is denied (E66)', async () => {
    await startPool('wrap')
    const typist = start(['--agent', 'shop'], { tty: true })
    await typist.says('/help lists the commands')
    typist.type('wrap it')
    await typist.says('Which paper?')
    const chat = await chatIn(mill, typist)
    await until('it is parked', async () => (await chat.diagnosis()).state === 'parked')
    const [paper, ribbon] = await chat.pendingInputs()
    await chat.answer(paper ?? '', { paper: 'blue' })
    await typist.says('what wrap asked was answered by somebody else, or has expired')
    await typist.says('│ Which ribbon?')
    await chat.deny(ribbon?.toolCall ?? '')
    await typist.says('denied wrap')
    typist.type('/answer red')
    await typist.says('no question waits for an answer')
    await typist.says('Done.')
  })

  it('is asked no longer once it has expired, and the chat goes on (E66)', async () => {
    await startPool('hurry')
    const typist = start(['--agent', 'shop'], { tty: true })
    await typist.says('/help lists the commands')
    typist.type('send it')
    await typist.says('How fast?')
    await typist.says(/what hurry asked was answered by somebody else, or has expired[\s\S]*sent 42: slow[\s\S]*Done\./)
  })

  it('is a task that is told of with its message, and again with the next one (E67)', async () => {
    await startPool('render')
    const typist = start(['--agent', 'shop'], { tty: true })
    await typist.says('/help lists the commands')
    typist.type('render it')
    await typist.says('waits for task job-7 of render: queued (looked at every 1 s)')
    await typist.says('waits for task job-7 of render: 40 %')
    percent = 80
    await typist.says('waits for task job-7 of render: 80 %')
    percent = 100
    await typist.says(/succeeded render: rendered[\s\S]*Done\./)
    expect(typist.out().split('of render: 40 %')).to.have.length(2)
  })

  it('is told of to programs as events, and tasks as values of their own (E66, E67)', async () => {
    await startPool('render', 'ship')
    const typist = start(['--agent', 'shop', '--json'])
    typist.type('render it')
    await typist.says('"type":"task"')
    percent = 100
    await typist.says('"input.requested"')
    typist.type('/answer {"size":"L"}')
    await typist.says('"problem"')
    typist.end()
    const { code, out } = await typist.ended
    expect(code).to.equal(3)
    const values = jsonLines(out) as { type: string; [name: string]: unknown }[]
    const find = (type: string) => values.find((value) => value.type === type)
    expect(find('task')).to.include({ name: 'render', id: 'job-7', pollMs: 1_000 })
    expect(find('input.requested')).to.include({ name: 'ship', key: 'ask-1', message: 'Where to with order 42?' })
    expect(find('problem')?.error).to.have.property('message').that.includes('street is missing')
  })
})
