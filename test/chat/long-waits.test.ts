import { expect } from 'chai'
import { ArgumentError, agentTool, defineAgent } from '../../src/index.ts'
import { text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'
import { rejectionOf } from './support/watching.ts'

const tenYears = 10 * 365 * 86_400_000

onEachDatabase('The longest wait of a tool', (kind) => {
  const bench = useBench(kind)

  /** Tools that wait so long: for a decision, an answer, a task, another agent. */
  function waiting(ms: number) {
    const helper = defineAgent({ name: freshName(), tools: [recording('dig', [], { requiresApproval: true })] })
    return [
      () => recording('gated', [], { requiresApproval: true, approvalExpiresMs: ms }),
      () =>
        recording('asks', [], {}, async ({ ask }) =>
          ask({ message: 'How?', fields: [{ name: 'how' }], expiresMs: ms }),
        ),
      () => recording('begins', [], { resume: async () => 'done' }, ({ task }) => task({ id: 'job', pollMs: ms })),
      () =>
        recording('limits', [], { resume: async () => 'done' }, ({ task }) =>
          task({ id: 'job', pollMs: tenYears, expiresMs: ms }),
        ),
      () => agentTool(helper, { name: 'help', description: 'Asks.', expiresMs: ms }),
      () =>
        recording('delegates', [], { agents: [helper] }, ({ delegate }) =>
          delegate({ agent: helper, message: 'On.', expiresMs: ms }),
        ),
    ]
  }

  async function asked(tool: ReturnType<typeof recording>) {
    const agent = defineAgent({ name: freshName(), tools: [tool] })
    const args = tool.name === 'help' ? { message: 'On.' } : {}
    await bench.script([toolCalls([call(tool.name, freshId(), args)]), toolCalls([call('dig')]), text('Done.')])
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    return { chat, mill }
  }

  for (const [at, make] of waiting(tenYears).entries()) {
    it(`parks the chat until then: ${make().name} (E178)`, async () => {
      const { chat, mill } = await asked(make())
      await chat.askLater('Go.')
      await chat.step()
      await chat.step()
      expect(await chat.waiting()).to.equal(true)
      const { wantedAt } = await mill.models.Chat.findByPk(chat.id, { rejectOnEmpty: true })
      expect(Math.abs(Number(wantedAt) - Date.now() - tenYears)).to.be.below(600_000)
      await chat.cancel()
      const tooLong = waiting(tenYears + 1)[at]
      const error = await rejectionOf((async () => (await asked(tooLong?.() as never)).chat.ask('Go.'))())
      expect(error).to.be.instanceOf(ArgumentError).and.have.property('message').that.includes('ten years')
    })
  }

  it('has room for 8 MiB: a tool that asks more, or gives its task more, is told (E178)', async () => {
    const large = 'x'.repeat(8 * 1024 * 1024)
    const asks = recording('asks', [], {}, async ({ ask }) => ask({ message: large, fields: [{ name: 'how' }] }))
    const begins = recording('begins', [], { resume: async () => 'done' }, ({ task }) =>
      task({ id: 'job', pollMs: tenYears, data: large }),
    )
    for (const tool of [asks, begins]) {
      const { chat } = await asked(tool)
      const error = await rejectionOf(chat.ask('Go.'))
      expect(error).to.be.instanceOf(ArgumentError).and.have.property('message').that.includes('8388608 bytes')
    }
  })
})
