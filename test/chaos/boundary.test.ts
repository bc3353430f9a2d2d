import { expect } from 'chai'
import * as z from 'zod'
import { defineAgent, defineTool } from '../../src/index.ts'
import { aroundStatements } from '../../src/testing/crashes/statements.ts'
import { text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { isCommit, kindsOf, statementKinds } from './boundary.ts'

onEachDatabase('The statements that workers are disturbed at', (kind) => {
  const bench = useBench(kind)

  it('are sent by a turn with a tool and a queued message, each of them, and their commits (E160)', async () => {
    const parameters = z.object({})
    const quick = defineTool({ name: 'quick', description: 'Is quick.', parameters, execute: () => 'done' })
    const agent = defineAgent({ name: 'one', tools: [quick] })
    await bench.script([toolCalls([{ name: 'quick', arguments: {} }]), text('Done.'), text('That too.')])
    const mill = await bench.connect({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    const sent: string[] = []
    aroundStatements(mill.sequelize, ({ sql }, send) => {
      sent.push(sql)
      return send()
    })
    await chat.askLater('Be quick')
    await chat.queue('And this', { steer: false })
    const pool = mill.startWorkers()
    await until('both are answered', async () => {
      return (await chat.messages()).length === 6 && !(await chat.running())
    })
    await pool.close()
    expect([...new Set(sent.flatMap(kindsOf))]).to.have.members(Object.keys(statementKinds))
    expect(sent.some(isCommit)).to.equal(true)
  })
})
