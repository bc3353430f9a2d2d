import { expect } from 'chai'
import * as z from 'zod'
import { ArgumentError, defineAgent, defineTool, type Tool, type ToolDefinition } from '../../src/index.ts'
import { text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { beforeNext } from '../support/insides.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { errorFrom } from '../tools/rows.ts'
import { change, lastCall, resultsById } from './support/rows.ts'
import { call, freshId, freshName } from './support/tools.ts'

const parameters = z.object({ cents: z.int().optional() })
type Definition = ToolDefinition<typeof parameters>
const toolOf = (execute: Definition['execute'], options: Partial<Definition> = {}): Tool =>
  defineTool({ name: 'refund', description: 'Refunds.', parameters, execute, ...options })

onEachDatabase('What people say to a call that waits', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000, sweepEveryMs: 100 })

  /** A chat whose next answer calls `refund` once, as the process that runs it and one of a person see it. */
  async function asked(tool: Tool, args: object = {}) {
    const id = freshId()
    await bench.script([toolCalls([call('refund', id, args)]), text('Done.')])
    const agent = defineAgent({ name: freshName(), tools: [tool] })
    const [mill, web] = [await bench.connect({ agents: [agent] }), await bench.connect({ agents: [agent] })]
    const chat = await mill.chats.create({ agent })
    await chat.ask('Refund me')
    return { id, mill, chat, other: await web.chats.find(chat.id) }
  }

  it('counts when it comes before anybody found the question expired, and no expiry is recorded (E45)', async () => {
    const { id, mill, chat, other } = await asked(
      toolOf((_args, { ask }) => ask({ message: 'Why?', fields: [{ name: 'why' }], expiresMs: 60_000 })),
    )
    const [question] = await other.pendingInputs()
    const { id: row, mcpState } = await lastCall(chat)
    const past = JSON.stringify(mcpState).replace(/"expiresAt":"[^"]*"/, '"expiresAt":"2020-01-01T00:00:00.000Z"')
    await change(mill.models.ToolCall, row, { mcp_state: past })
    beforeNext(mill, 'pauseToolCall', () => other.answer(question ?? '', { why: 'broken' }))
    await chat.complete()
    expect((await resultsById(chat))[id]?.content).to.equal('{"why":"broken"}')
    expect((await chat.decisions()).map(({ action }) => action)).to.deep.equal(['answered'])
  })

  it('counts once when several answer at the same moment, and the tool gets what was recorded (E40)', async () => {
    const { id, chat, other } = await asked(
      toolOf((_args, { ask }) => ask({ message: 'How much?', fields: [{ name: 'cents', type: 'integer' }] })),
    )
    const [question] = await other.pendingInputs()
    await Promise.all([1, 2, 3, 4].map((cents) => (cents % 2 ? chat : other).answer(question ?? '', { cents })))
    await chat.complete()
    const decisions = await chat.decisions()
    expect(decisions).to.have.length(1)
    expect((await resultsById(chat))[id]?.content).to.equal(JSON.stringify(decisions[0]?.value))
  })

  it('is waited for until each of the questions that were asked at once has it (S98)', async () => {
    let runs = 0
    const { id, chat, other } = await asked(
      toolOf((_args, { ask }) => {
        runs++
        return Promise.all(['a', 'b'].map((name) => ask({ key: name, message: name, fields: [{ name }] })))
      }),
    )
    const questions = await other.pendingInputs()
    expect(questions.map(({ key }) => key)).to.deep.equal(['a', 'b'])
    await other.answer(questions[0] ?? '', { a: 'one' })
    await chat.complete()
    expect([runs, await chat.awaitingInput()]).to.deep.equal([1, true])
    await other.answer(questions[1] ?? '', { b: 'two' })
    await chat.complete()
    expect((await resultsById(chat))[id]?.content).to.equal('[{"a":"one"},{"b":"two"}]')
    expect(runs).to.equal(2)
  })

  it('is told to viewers, also where nobody said it in time; the record names the question (E45)', async () => {
    const fields = [{ name: 'cents', type: 'integer' as const, default: 5 }]
    const { chat } = await asked(
      toolOf((_args, { ask }) => ask({ key: 'sum', message: 'How much?', fields, expiresMs: 1, onExpired: 'default' })),
    )
    await until('it goes on', async () => (await chat.complete())?.content === 'Done.')
    const seen: unknown[] = []
    for await (const event of chat.events({ after: '0' })) {
      if (event.type === 'input.answered') seen.push([event.key, event.declined])
      if (event.type === 'run.finished') break
    }
    expect(seen).to.deep.equal([['sum', false]])
    const [decision] = await chat.decisions()
    expect([decision?.action, decision?.requestKey, decision?.value]).to.deep.equal(['expired', 'sum', { cents: 5 }])
  })

  it('may be a denial of a call that waits for an answer: it is closed, and the chat goes on (E46)', async () => {
    const { id, chat, other } = await asked(
      toolOf((_args, { ask }) => ask({ message: 'Why?', fields: [{ name: 'why' }] })),
    )
    await other.deny(id, { reason: 'Enough.' })
    expect([await chat.waiting(), await chat.pendingInputs()]).to.deep.equal([false, []])
    expect((await chat.complete())?.content).to.equal('Done.')
    expect((await resultsById(chat))[id]?.outcome).to.equal('denied')
    expect((await lastCall(chat)).mcpState).to.equal(null)
  })

  it('may be a denial of a call that waits for a task, which is ended with it (E46)', async () => {
    const ended: string[] = []
    const { id, chat, other } = await asked(
      toolOf((_args, { task }) => task({ id: 'job-1', pollMs: 60_000 }), {
        resume: (_task, { task }) => task({ id: 'job-1', pollMs: 60_000 }),
        cancelTask: (task) => void ended.push(task.id),
      }),
    )
    await other.deny(id)
    expect((await chat.complete())?.content).to.equal('Done.')
    expect((await resultsById(chat))[id]?.outcome).to.equal('denied')
    expect(ended).to.deep.equal(['job-1'])
  })

  it('may be what the look at a task asks for: the task is kept, and looked at again with the answer (E47)', async () => {
    const seen: string[] = []
    const { id, chat, other } = await asked(
      toolOf(
        (_args, { task }) => {
          seen.push('begun')
          return task({ id: 'job-1', data: { step: 1 }, pollMs: 1 })
        },
        {
          resume: async (task, { ask }) => {
            const { code } = await ask({ message: 'Code?', fields: [{ name: 'code' }] })
            return `${task.id} ${code}`
          },
        },
      ),
    )
    await until('it asks', async () => {
      await chat.complete()
      return chat.awaitingInput()
    })
    expect((await chat.pendingTasks()).map((task) => task.data)).to.deep.equal([{ step: 1 }])
    const [question] = await other.pendingInputs()
    await other.answer(question ?? '', { code: '42' })
    expect((await chat.complete())?.content).to.equal('Done.')
    expect((await resultsById(chat))[id]?.content).to.equal('job-1 42')
    expect(seen).to.deep.equal(['begun'])
  })

  it('may be a denial after other arguments: the model is not told that the call had them (E42)', async () => {
    const ran: unknown[] = []
    const { id, chat, other } = await asked(
      toolOf((args) => void ran.push(args), { requiresApproval: true }),
      { cents: 900 },
    )
    await other.approve(id, { arguments: { cents: 100 }, wake: false })
    await other.deny(id)
    await chat.complete()
    expect(ran).to.deep.equal([])
    expect((await lastCall(chat)).editedArguments).to.equal(null)
    expect(bench.model.requests[1]?.messages.at(-1)?.content).to.equal(
      '{"error":"The user denied the refund tool call."}',
    )
  })

  for (const [what, options, execute] of [
    ['a decision', { requiresApproval: true, approvalExpiresMs: 60_000 }, () => 'ran'],
    [
      'an answer',
      {},
      (_args: unknown, { ask }: Parameters<Definition['execute']>[1]) =>
        ask({ message: '?', fields: [{ name: 'x' }], expiresMs: 60_000 }),
    ],
  ] as const) {
    it(`keeps the chat parked while there is still time for ${what}, for viewers and operators alike (E48)`, async () => {
      const { chat, other, mill } = await asked(toolOf(execute, options))
      expect((await mill.models.Chat.findByPk(chat.id))?.wantedAt).to.be.instanceOf(Date)
      const { state, waitsFor } = await other.diagnosis()
      expect([state, waitsFor.length]).to.deep.equal(['parked', 1])
      const joined = []
      for await (const event of other.events()) {
        joined.push(event.type)
        if (event.type === 'run.waiting') break
      }
      expect(joined).to.include('message.finished')
    })
  }

  it('is asked for with defaults that its fields take, or the tool is told at once (E49)', async () => {
    const errors: unknown[] = []
    const bad = [
      [{ name: 'a', type: 'integer' as const, default: 'x' }],
      [{ name: 'a', choices: ['b', 'c'], default: 'd' }],
      [{ name: 'a' }, { name: 'a' }],
    ]
    await asked(
      toolOf(async (_args, { ask }) => {
        for (const fields of bad) errors.push(await errorFrom(() => ask({ message: '?', fields })))
        return 'over'
      }),
    )
    expect(errors).to.have.length(3)
    for (const error of errors) expect(error).to.be.instanceOf(ArgumentError)
  })
})
