import { expect } from 'chai'
import { CancelledError, defineAgent, type ToolContext } from '../../src/index.ts'
import { text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { lastCall, resultsById } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'
import { rejectionOf } from './support/watching.ts'

/** Resolves once the signal is aborted, as the request of a tool that heeds it ends. */
const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))

onEachDatabase('A task that is given up', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })

  /** A chat whose tool begins a task and looks at it; `act` is what is done with the chat while it does. */
  async function asked(execute: (context: ToolContext) => unknown, resume: (context: ToolContext) => unknown) {
    const ended: string[] = []
    const id = freshId()
    const render = recording(
      'render',
      [],
      { resume: async (_task, context) => resume(context), cancelTask: (task) => void ended.push(task.id) },
      execute,
    )
    await bench.script([toolCalls([call('render', id)]), text('Next.')])
    const agent = defineAgent({ name: freshName(), tools: [render] })
    const [mill, web] = [await bench.connect({ agents: [agent] }), await bench.connect({ agents: [agent] })]
    const chat = await mill.chats.create({ agent })
    return { id, chat, web: await web.chats.find(chat.id), ended }
  }
  const again = ({ task }: ToolContext) => task({ id: 'job-1', pollMs: 60_000 })

  it('is ended where a cancel comes when the tool has just begun it (S66)', async () => {
    const { id, chat, web, ended } = await asked(async (context) => {
      await web.cancel()
      await aborted(context.signal)
      return again(context)
    }, again)
    expect(await rejectionOf(chat.ask('Go'))).to.be.instanceOf(CancelledError)
    expect(ended).to.deep.equal(['job-1'])
    expect((await resultsById(chat))[id]?.outcome).to.equal('interrupted')
    expect((await lastCall(chat)).mcpState).to.equal(null)
    expect((await chat.ask('And now?'))?.content).to.equal('Next.')
  })

  for (const how of ['returns it again', 'throws'] as const) {
    it(`is ended where a cancel comes during a look at it that ${how === 'throws' ? 'throws' : 'finds it at work'} (S66)`, async () => {
      const { id, chat, web, ended } = await asked(again, async (context) => {
        await web.cancel()
        await aborted(context.signal)
        if (how === 'throws') throw new Error('aborted')
        return again(context)
      })
      await chat.ask('Go')
      expect(await rejectionOf(chat.complete())).to.be.instanceOf(CancelledError)
      expect(ended).to.deep.equal(['job-1'])
      expect((await resultsById(chat))[id]?.outcome).to.equal('interrupted')
      expect((await chat.ask('And now?'))?.content).to.equal('Next.')
    })
  }

  it('has its result where a look at it, during the cancel, finds that it is done (S66)', async () => {
    const { id, chat, web, ended } = await asked(again, async (context) => {
      await web.cancel()
      await aborted(context.signal)
      return 'rendered'
    })
    await chat.ask('Go')
    expect(await rejectionOf(chat.complete())).to.be.instanceOf(CancelledError)
    expect(ended).to.deep.equal([])
    expect((await resultsById(chat))[id]).to.deep.equal({ content: 'rendered', outcome: 'succeeded' })
  })

  it('is ended where its round is left behind by another question (S66)', async () => {
    const { id, chat, ended } = await asked(again, again)
    await chat.ask('Go')
    await chat.addMessage({ role: 'user', content: 'Never mind.' })
    expect((await chat.complete())?.content).to.equal('Next.')
    expect(ended).to.deep.equal(['job-1'])
    expect((await resultsById(chat))[id]?.outcome).to.equal('interrupted')
  })
})
