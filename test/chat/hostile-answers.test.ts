import { expect } from 'chai'
import { AnswerTooLargeError, defineAgent } from '../../src/index.ts'
import { type Reply, rawSse, text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { errorFrom } from '../tools/rows.ts'
import { lastCalls, roles, usageRows } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

onEachDatabase('An answer of a hostile or broken model', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })

  async function chatWith(replies: readonly Reply[], options: { readonly maxAnswerBytes?: number } = {}) {
    await bench.script(replies)
    const agent = defineAgent({ name: freshName(), tools: [recording('read', [])], ...options })
    const mill = await bench.connect({ agents: [agent] })
    return { mill, chat: await mill.chats.create({ agent }) }
  }

  /** One chunk as a stream of its own. */
  const stream = (delta: object, rest: object = {}) =>
    rawSse(
      `data: ${JSON.stringify({ id: 'cc', choices: [{ index: 0, delta, finish_reason: 'stop' }], ...rest })}\n\ndata: [DONE]\n\n`,
    )

  it('that is larger than the agent allows fails the turn, once and for good, and spoils nothing (E100)', async () => {
    const replies = [text('x'.repeat(5000), { chunks: 50 }), text('y'.repeat(2000))]
    const { mill, chat } = await chatWith(replies, { maxAnswerBytes: 2000 })
    const error = await errorFrom(() => chat.ask('Say little'))
    expect(error).to.be.instanceOf(AnswerTooLargeError)
    expect(await roles(chat)).to.equal('user')
    expect(await chat.failure()).to.deep.include({ code: 'provider.answer_too_large', turn: 1 })
    const [usage, ...more] = await usageRows(mill, chat)
    expect([usage?.status, usage?.errorCode, usage?.messageId, more.length]).to.deep.equal([
      'failed',
      'provider.answer_too_large',
      null,
      0,
    ])
    expect((await chat.ask('Less'))?.content).to.have.length(2000)
    expect(bench.model.requests).to.have.length(2)
  })

  it('with 50 MB of tool arguments fails the turn, and no call of it is stored (E100)', async function () {
    this.timeout(60_000)
    const made = {
      index: 0,
      id: freshId(),
      function: { name: 'read', arguments: `{"note":"${'x'.repeat(50_000_000)}"}` },
    }
    const { chat } = await chatWith([stream({ tool_calls: [made] })])
    expect(await errorFrom(() => chat.ask('Read'))).to.be.instanceOf(AnswerTooLargeError)
    expect(await roles(chat)).to.equal('user')
  })

  it('with thousands of calls is stored whole (E102)', async function () {
    this.timeout(60_000)
    const many = Array.from({ length: 1300 }, () => call('no_such_tool', freshId()))
    const { chat } = await chatWith([toolCalls(many)])
    await chat.askLater('Go')
    await chat.step()
    expect((await lastCalls(chat)).map(({ toolCallId }) => toolCallId)).to.deep.equal(many.map(({ id }) => id))
  })

  it('with words and numbers that fit no column is stored without them (E102)', async () => {
    const id = freshId()
    const wild = [
      stream({ content: 'One.' }, { usage: { prompt_tokens: 1e300, completion_tokens: 9_000_000_000 } }),
      stream({ content: 'Two.' }, { choices: [{ delta: { content: 'Two.' }, finish_reason: `${'s'.repeat(254)}😀` }] }),
      stream({ tool_calls: [{ index: 0, id, function: { name: `${'n'.repeat(254)}😀`, arguments: '{}' } }] }),
      text('Four.'),
    ]
    const { mill, chat } = await chatWith(wild)
    expect((await chat.ask('1'))?.content).to.equal('One.')
    expect((await usageRows(mill, chat)).map(({ status, inputTokens }) => [status, inputTokens])).to.deep.equal([
      ['succeeded', null],
    ])
    expect((await chat.ask('2'))?.finishReason).to.equal(`${'s'.repeat(254)}\uFFFD`)
    expect((await chat.ask('3'))?.content).to.equal('Four.')
    expect((await lastCalls(chat)).map(({ name }) => name)).to.deep.equal([`${'n'.repeat(254)}\uFFFD`])
  })

  it('with arguments nested too deep to be stored is told so, and nothing runs (E102)', async () => {
    const deep = `{"note":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
    const { chat } = await chatWith([toolCalls([call('read', freshId(), deep)]), text('Sorry.')])
    expect((await chat.ask('Read'))?.content).to.equal('Sorry.')
    const [stored] = await lastCalls(chat)
    expect([stored?.arguments, stored?.malformedArguments]).to.deep.equal([{}, deep])
    expect(bench.model.requests[1]?.messages.at(-1)?.content).to.contain('nested')
  })

  it('with halves of characters is stored with U+FFFD in their place, and whole ones are kept (E107)', async () => {
    const id = freshId()
    const half = '\ud83d'
    const answer = stream({
      content: `a${half}b😀`,
      reasoning_content: `c${half}`,
      annotations: [{ [half]: [half] }],
      tool_calls: [{ index: 0, id: `${id}${half}`, function: { name: 'read', arguments: `{"note":"\\ud83d"}` } }],
    })
    const { chat } = await chatWith([answer, text('Done.')])
    expect((await chat.ask('Read'))?.content).to.equal('Done.')
    const message = (await chat.messages())[1]
    expect([message?.content, message?.thinkingText, message?.rawReasoning, message?.citations]).to.deep.equal([
      'a\uFFFDb😀',
      'c\uFFFD',
      { reasoning_content: 'c\uFFFD' },
      [{ '\uFFFD': ['\uFFFD'] }],
    ])
    const [stored] = message?.toolCalls ?? []
    expect([stored?.toolCallId, stored?.arguments]).to.deep.equal([`${id}\uFFFD`, { note: '\uFFFD' }])
  })

  it('whose stream cuts a character in two is stored with the whole one (E107)', async () => {
    const pieces = ['\ud83d', '\ude00'].map(
      (content) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`,
    )
    const { chat } = await chatWith([rawSse(`${pieces.join('')}data: [DONE]\n\n`)])
    expect((await chat.ask('Smile'))?.content).to.equal('😀')
  })
})
