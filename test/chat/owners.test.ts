import { expect } from 'chai'
import { Redis } from 'ioredis'
import { QueryTypes } from 'sequelize'
import { ArgumentError, type Chat, ChatNotFoundError, defineAgent, type Owner } from '../../src/index.ts'
import { gate, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { deferred, errorFrom } from '../tools/rows.ts'
import { change, usageRows } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

onEachDatabase('A tenant', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })
  const user = (): Owner => ({ type: 'User', id: freshName() })

  describe('as an owner', () => {
    it('comes back in the form in which it was given, for chats, tools, contexts and queued messages (E50)', async () => {
      await bench.script([toolCalls([call('look', freshId())]), text('Done')])
      const seen: unknown[] = []
      const look = recording('look', [], {}, ({ chat }) => void seen.push(chat.owner))
      const agent = defineAgent({ name: freshName(), tools: [look] })
      const mill = await bench.connect({ agents: [agent], contextFor: ({ owner }) => void seen.push(owner) })
      const owner = user()
      const chat = await mill.chats.create({ agent, owner })
      expect((await mill.chats.find(chat.id)).owner).to.deep.equal(owner)
      expect((await mill.chats.create({ owner: 'anna' })).owner).to.equal('anna')
      expect((await mill.chats.create()).owner).to.equal(null)
      await chat.ask('Look')
      expect(seen).to.deep.equal([owner, owner])
      const key = JSON.stringify(owner)
      expect((await usageRows(mill, chat)).map((usage) => usage.owner)).to.deep.equal([key, key])

      await chat.queue('Later', { owner, wake: false })
      await chat.queue('And', { owner: 'bob', wake: false })
      await chat.queue('Other', { owner: { any: 'thing' }, wake: false })
      const queued = await chat.queuedMessages()
      expect(queued.map((one) => [one.owner, one.ownerKey])).to.deep.equal([
        [owner, key],
        ['bob', 'bob'],
        [{ any: 'thing' }, null],
      ])
      expect(await mill.models.QueuedMessage.count({ where: { ownerKey: key } })).to.equal(1)
    })

    it('is refused where it could not come back as it was (E50)', async () => {
      const mill = await bench.connect()
      const before = await mill.models.Chat.count()
      const wrong: unknown[] = ['', 'x'.repeat(256), 7, { type: 'User' }, { type: 'User', id: 7 }, '{"type":"User"}']
      for (const owner of wrong) {
        expect(await errorFrom(() => mill.chats.create({ owner: owner as Owner }))).to.be.instanceOf(ArgumentError)
        expect(await errorFrom(() => mill.chats.list({ owner: owner as Owner }))).to.be.instanceOf(ArgumentError)
      }
      expect(await mill.models.Chat.count()).to.equal(before)
    })

    it('is told what all of its attempts took, exactly, and how many have no known cost (E51)', async () => {
      await bench.script([text('One'), text('Two'), text('Three')])
      const mill = await bench.connect()
      const owner = user()
      const [first, second] = [await mill.chats.create({ owner }), await mill.chats.create({ owner })]
      await first.ask('1')
      await first.ask('2')
      await second.ask('3')
      const [a, b, c] = [...(await usageRows(mill, first)), ...(await usageRows(mill, second))]
      await change(mill.models.Usage, a?.id ?? '', { total_cost: '0.1000000001', input_tokens: 10, output_tokens: 1 })
      await change(mill.models.Usage, b?.id ?? '', {
        total_cost: '0.2000000002',
        input_tokens: 20,
        output_tokens: null,
      })
      await change(mill.models.Usage, c?.id ?? '', { total_cost: null, input_tokens: null, output_tokens: 4 })
      const total = await mill.usage.total({ owner })
      expect(total).to.deep.include({ attempts: 3, cost: '0.3000000003', unknownCosts: 1 })
      expect(total.tokens).to.deep.include({ input: 30, output: 5 })
      const began = a?.createdAt ?? new Date()
      await change(mill.models.Usage, a?.id ?? '', { created_at: new Date(began.getTime() - 60_000) })
      expect((await mill.usage.total({ owner, since: began })).attempts).to.equal(2)
      expect((await mill.usage.total({ owner, until: began })).cost).to.equal('0.1000000001')
      const none = { input: null, output: null, cacheRead: null, cacheWrite: null, thinking: null }
      expect(await mill.usage.total({ owner: user() })).to.deep.equal({
        attempts: 0,
        tokens: none,
        cost: '0',
        unknownCosts: 0,
      })
      expect((await mill.usage.total()).attempts).to.be.greaterThan(2)
      const wrong = { since: 'yesterday' as unknown as Date }
      expect(await errorFrom(() => mill.usage.total(wrong))).to.be.instanceOf(ArgumentError)
    })
  })

  describe('in lists', () => {
    const ids = (page: { readonly chats: readonly Chat[] }) => page.chats.map(({ id }) => id)

    it('has its chats newest first, each once over all pages, also while chats are made (E51)', async () => {
      const mill = await bench.connect()
      const owner = user()
      const made: string[] = []
      for (let at = 0; at < 5; at++) made.unshift((await mill.chats.create({ owner })).id)
      await mill.chats.create({ owner: user() })
      // Of the same moment: the id decides.
      const at = new Date('2026-01-01T00:00:00Z')
      for (const id of made) await change(mill.models.Chat, id, { created_at: at })
      const sorted = made.toSorted().reverse()
      const first = await mill.chats.list({ owner, limit: 2 })
      const late = await mill.chats.create({ owner })
      const second = await mill.chats.list({ owner, limit: 2, before: first.next ?? '' })
      const third = await mill.chats.list({ owner, limit: 2, before: second.next ?? '' })
      expect([...ids(first), ...ids(second), ...ids(third)]).to.deep.equal(sorted)
      expect(third.next).to.equal(null)
      expect(first.chats[0]?.owner).to.deep.equal(owner)
      expect(ids(await mill.chats.list({ owner, limit: 1 }))).to.deep.equal([late.id])
      expect((await mill.chats.list({ owner, limit: 6 })).next).to.equal(null)
    })

    it('has its chats by agent and by where they stand (E51)', async () => {
      await bench.script([text('Hello'), toolCalls([call('wipe', freshId())])])
      const agent = defineAgent({
        name: freshName(),
        tools: [recording('wipe', [], { requiresApproval: true })],
      })
      const mill = await bench.connect({ agents: [agent] })
      const owner = user()
      const make = () => mill.chats.create({ owner, agent })
      const [idle, parked, failed, running, later] = [
        await make(),
        await make(),
        await make(),
        await make(),
        await make(),
      ]
      await idle.ask('Hi')
      await parked.ask('Wipe')
      await change(mill.models.Chat, failed.id, { failure: '{"code":"x"}' })
      await change(mill.models.Chat, running.id, { claimed_until: new Date(Date.now() + 60_000) })
      await change(mill.models.Chat, later.id, { wanted_at: new Date(Date.now() + 600_000) })
      const other = await mill.chats.create({ owner })
      for (const [state, chats] of [
        ['idle', [other, idle]],
        ['parked', [parked]],
        ['failed', [failed]],
        ['running', [running]],
        ['wanted', [later]],
        ['due', []],
      ] as const) {
        expect(ids(await mill.chats.list({ owner, state })), state).to.deep.equal(chats.map(({ id }) => id))
      }
      expect(ids(await mill.chats.list({ agent: agent.name, state: 'idle' }))).to.deep.equal([idle.id])
      const wrong = [{ state: 'asleep' }, { limit: 0 }, { limit: 201 }, { before: 'x' }, { text: 'x' }]
      for (const options of wrong) {
        const error = await errorFrom(() => mill.chats.list(options as never))
        expect(error).to.be.instanceOf(ArgumentError).and.have.property('message').that.includes('chats.list()')
      }
    })

    it('is listed by one statement that reads an index in its order (E51)', async () => {
      const statements: string[] = []
      const mill = await bench.connect({ observe: { onStatement: (sql) => statements.push(sql) } })
      const owner = user()
      for (let at = 0; at < 3; at++) await mill.chats.create({ owner })
      statements.length = 0
      await mill.chats.list({ owner, limit: 2 })
      expect(statements).to.have.length(1)
      const plan = JSON.stringify(await explained(mill, statements[0] ?? '', [JSON.stringify(owner)]))
      expect(plan)
        .to.include('threadmill_chats_listed_owner')
        .and.not.match(/filesort|TEMP B-TREE/i)
    })

    async function explained(
      mill: Awaited<ReturnType<typeof bench.connect>>,
      sql: string,
      replacements: string[],
    ): Promise<object[]> {
      const plain = sql.replace(/^Executing[^:]*: /, '').replace(/\$\w+|\?/g, '?')
      const prefix = mill.sequelize.getDialect() === 'sqlite' ? 'EXPLAIN QUERY PLAN ' : 'EXPLAIN '
      return mill.sequelize.query(prefix + plain, { replacements, type: QueryTypes.SELECT })
    }
  })

  describe('in a transcript', () => {
    it('reads pages from its end, and before and after a position, calls included (E52)', async () => {
      await bench.script([toolCalls([call('look', freshId())]), text('Seen'), text('Bye')])
      const agent = defineAgent({ name: freshName(), tools: [recording('look', [])] })
      const mill = await bench.connect({ agents: [agent] })
      const chat = await mill.chats.create({ agent })
      await chat.ask('Look')
      await chat.ask('Bye')
      const all = await chat.messages()
      const contents = (messages: readonly { readonly id: string }[]) => messages.map(({ id }) => id)
      const last = await chat.page({ limit: 2 })
      const middle = await chat.page({ limit: 2, before: last.next ?? -1 })
      const first = await chat.page({ limit: 2, before: middle.next ?? -1 })
      expect([...first.messages, ...middle.messages, ...last.messages]).to.deep.equal(all)
      expect(middle.messages.length + first.messages.length).to.equal(4)
      expect(first.next).to.equal(null)
      expect(all[1]?.toolCalls).to.have.length(1)
      const forth = await chat.page({ after: all[0]?.position ?? -1, limit: 3 })
      expect(contents(forth.messages)).to.deep.equal(contents(all.slice(1, 4)))
      const rest = await chat.page({ after: forth.next ?? -1 })
      expect(contents(rest.messages)).to.deep.equal(contents(all.slice(4)))
      expect(rest.next).to.equal(null)
      for (const wrong of [{ before: 1, after: 1 }, { limit: 501 }, { before: 'x' }]) {
        const error = await errorFrom(() => chat.page(wrong as never))
        expect(error).to.be.instanceOf(ArgumentError).and.have.property('message').that.includes(chat.id)
      }
    })

    it('finds questions and answers with a text in them as it is, in either case (E52)', async () => {
      await bench.script([
        toolCalls([call('look', freshId(), { note: '100% sure' })]),
        text('It is 100% SURE!'),
        text('no'),
      ])
      const agent = defineAgent({
        name: freshName(),
        instructions: 'Be 100% sure.',
        tools: [recording('look', [], {}, () => '100% sure')],
      })
      const mill = await bench.connect({ agents: [agent] })
      const owner = user()
      const chat = await mill.chats.create({ agent, owner })
      await chat.ask('Are you 100% sure_?')
      await chat.ask('Are you 1000 sure!?')
      const found = async (what: string, options = {}) =>
        (await chat.search(what, options)).messages.map(({ content }) => content)
      expect(await found('100% sure')).to.deep.equal(['Are you 100% sure_?', 'It is 100% SURE!'])
      expect(await found('e_?')).to.deep.equal(['Are you 100% sure_?'])
      expect(await found('e!?')).to.deep.equal(['Are you 1000 sure!?'])
      expect(await found("'")).to.deep.equal([])
      const last = await chat.search('SURE', { limit: 2 })
      expect(last.messages.map(({ content }) => content)).to.deep.equal(['It is 100% SURE!', 'Are you 1000 sure!?'])
      expect(await found('sure', { before: last.next })).to.deep.equal(['Are you 100% sure_?'])
      expect(await errorFrom(() => chat.search(''))).to.be.instanceOf(ArgumentError)

      const other = await mill.chats.create({ owner })
      await other.addMessage({ role: 'user', content: 'quite sure' })
      const elsewhere = await mill.chats.create({ owner: user() })
      await elsewhere.addMessage({ role: 'user', content: '100% sure' })
      const chats = async (what: string) => (await mill.chats.search(what, { owner })).chats.map(({ id }) => id)
      expect(await chats('sure')).to.deep.equal([other.id, chat.id])
      expect(await chats('100% sure')).to.deep.equal([chat.id])
      const without = await errorFrom(() => mill.chats.search('sure', {} as never))
      expect(without).to.be.instanceOf(ArgumentError).and.have.property('message').that.includes('owner')
    })
  })

  describe('that goes', () => {
    it('takes every row and the stream along, and readers come to their end (E53)', async () => {
      await bench.script([toolCalls([call('wipe', freshId())])])
      const agent = defineAgent({ name: freshName(), tools: [recording('wipe', [], { requiresApproval: true })] })
      const mill = await bench.connect({ agents: [agent] })
      const chat = await mill.chats.create({ agent })
      await chat.ask('Wipe')
      const [open] = await chat.pendingApprovals()
      await chat.approve(open ?? '', { by: 'anna', wake: false })
      await chat.queue('More', { wake: false })
      const kept = await mill.chats.create({ agent })
      await kept.addMessage({ role: 'user', content: 'still here' })
      const reading = (async () => {
        const seen: string[] = []
        for await (const event of chat.events()) seen.push(event.type)
        return seen
      })()
      await until('the stream is there', async () => (await streamsOf(chat.id)).length === 1)
      await chat.delete()
      const { Message, ToolCall, QueuedMessage, Usage, Decision } = mill.models
      const left: number[] = []
      for (const model of [Message, ToolCall, QueuedMessage, Usage, Decision] as (typeof Message)[]) {
        left.push(await model.count({ where: { chatId: chat.id } }))
      }
      expect(left).to.deep.equal([0, 0, 0, 0, 0])
      expect(await reading).to.include('run.waiting')
      expect(await streamsOf(chat.id)).to.deep.equal([])
      expect(await kept.messages()).to.have.length(1)
      for (const act of [() => chat.delete(), () => mill.chats.delete(chat.id), () => mill.chats.find(chat.id)]) {
        expect(await errorFrom(act)).to.be.instanceOf(ChatNotFoundError)
      }
    })

    it('ends a run of another process in the middle of a tool or an answer, and nothing comes back (E53, S31)', async () => {
      const answer = gate(text('Too late'))
      await bench.script([toolCalls([call('slow', freshId()), call('next', freshId())]), answer])
      const finish = deferred<string>()
      const runs: string[] = []
      const agent = defineAgent({
        name: freshName(),
        tools: [recording('slow', runs, {}, () => finish.promise), recording('next', runs)],
      })
      const [here, there] = [await bench.connect({ agents: [agent] }), await bench.connect({ agents: [agent] })]
      const inTool = await here.chats.create({ agent })
      const first = errorFrom(() => inTool.ask('Go'))
      await until('the tool runs', () => runs.includes('slow'))
      await there.chats.delete(inTool.id)
      finish.resolve('done')
      expect(await first).to.be.instanceOf(ChatNotFoundError)

      const inAnswer = await here.chats.create({ agent })
      const second = errorFrom(() => inAnswer.ask('Go'))
      await answer.reached
      await there.chats.delete(inAnswer.id)
      answer.release()
      expect(await second).to.be.instanceOf(ChatNotFoundError)
      for (const { id } of [inTool, inAnswer]) {
        expect(await there.models.Message.count({ where: { chatId: id } })).to.equal(0)
        expect(await there.models.Usage.count({ where: { chatId: id } })).to.equal(0)
      }
      expect(bench.model.requests).to.have.length(2)
      expect(runs).to.deep.equal(['slow'])
      await until('their streams are gone', async () => (await streamsOf(inTool.id, inAnswer.id)).length === 0)
    })

    async function streamsOf(...chatIds: string[]): Promise<string[]> {
      const redis = new Redis(bench.redis.url)
      const keys = await redis.keys('*:events:*')
      redis.disconnect()
      return keys.filter((key) => chatIds.some((id) => key.includes(id)))
    }
  })
})
