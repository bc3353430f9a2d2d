import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import {
  ArgumentError,
  Attachment,
  AttachmentError,
  type Chat,
  defineAgent,
  diskStore,
  type Message,
  type ModelClient,
  type Tool,
  type ToolContext,
} from '../../src/index.ts'
import { text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { errorFrom } from '../tools/rows.ts'
import { resultsById } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

onEachDatabase('Files of tools', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })
  let folder = ''
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'threadmill-tool-files-'))
  })
  after(() => rm(folder, { recursive: true }))

  type More = Partial<Parameters<typeof defineAgent>[0]>
  const setUp = async (tools: readonly Tool[], replies: Parameters<typeof bench.script>[0], more: More = {}) => {
    await bench.script(replies)
    const agent = defineAgent({ name: freshName(), tools, retries: 0, ...more })
    const blobs = await mkdtemp(join(folder, 'blobs-'))
    const options = { agents: [agent], attachments: { store: diskStore(blobs), maxBytes: 1_000 } }
    const mill = await bench.connect(options)
    const kept = async () => (await readdir(blobs, { recursive: true })).filter((name) => /[0-9a-f]{64}$/.test(name))
    return { mill, options, kept, chat: await mill.chats.create({ agent }) }
  }
  const file = (data: string, filename: string) => ({ data: Buffer.from(data), filename })
  const base64 = (data: string) => Buffer.from(data).toString('base64')
  const picture = (data: string) => ({
    type: 'image_url',
    image_url: { url: `data:image/png;base64,${base64(data)}` },
  })
  const draws = (name: string, ...files: Parameters<ToolContext['attach']>[0][]) =>
    recording(name, [], {}, async ({ attach }) => {
      for (const one of files) await attach(one)
      return `${name} done`
    })
  const result = async (chat: Chat): Promise<Message> => {
    const found = (await chat.messages()).find(({ role }) => role === 'tool')
    if (found === undefined) throw new Error('The chat has no result')
    return found
  }
  const contents = (message: Message) =>
    Promise.all(
      (message.attachments ?? []).map(async (one) => [one.filename, Buffer.from(await one.bytes()).toString()]),
    )
  const sent = (at: number) => bench.model.requests.at(at)?.messages ?? []

  it('are those of the call’s result, in the order in which they were attached, each stored once (E80)', async () => {
    const path = join(folder, 'report.csv')
    const tool = recording('draw', [], {}, async ({ attach }) => {
      await writeFile(path, 'a;b')
      await attach(path)
      await rm(path)
      // The second is there before the first.
      const slow = new Blob([]).stream().pipeThrough(
        new TransformStream({
          async flush(controller) {
            await attach(file('quick', 'quick.txt'))
            controller.enqueue(Buffer.from('slow'))
          },
        }),
      )
      await attach([{ data: slow, filename: 'slow.txt' }, null, '', file('a;b', 'again.csv')])
      await attach(null)
      return { drawn: 4 }
    })
    const { chat, kept, mill } = await setUp([tool], [toolCalls([call('draw')]), text('Drawn.')])
    expect((await chat.ask('Draw'))?.content).to.equal('Drawn.')
    const message = await result(chat)
    expect([message.content, message.outcome]).to.deep.equal(['{"drawn":4}', 'succeeded'])
    expect(await contents(message)).to.deep.equal([
      ['report.csv', 'a;b'],
      ['slow.txt', 'slow'],
      ['again.csv', 'a;b'],
      ['quick.txt', 'quick'],
    ])
    expect(message.attachments?.[0]).to.be.instanceOf(Attachment)
    expect(await kept()).to.have.length(3)
    expect(await mill.purgeAttachments({ unusedForMs: 0 })).to.equal(0)
    const inMemory = (await chat.toLlm()).messages.find(({ role }) => role === 'tool')
    expect(inMemory?.attachments).to.have.length(4)
  })

  it('follow all results of their round as one message, which says whose they are (E82)', async () => {
    const [first, second, third] = [freshId(), freshId(), freshId()]
    const png = { ...file('pixels', 'chart'), contentType: 'image/png' }
    const tools = [draws('draw', png, file('id;n', 'a.csv')), draws('count'), draws('print', file('%PDF', 'a.pdf'))]
    const calls = [call('draw', first), call('count', second), call('print', third)]
    const { chat, options } = await setUp(tools, [toolCalls(calls), text('Done.'), text('Still.')], { concurrency: 3 })
    await chat.ask('Go')
    const expected = [
      {
        role: 'tool',
        tool_call_id: first,
        content: 'draw done\n\nAttached: chart (image/png, 6 bytes)\nAttached: a.csv (text/csv, 4 bytes)',
      },
      { role: 'tool', tool_call_id: second, content: 'count done' },
      { role: 'tool', tool_call_id: third, content: 'print done\n\nAttached: a.pdf (application/pdf, 4 bytes)' },
      {
        role: 'user',
        content: [
          { type: 'text', text: `Attached by draw (call ${first}): chart, a.csv` },
          picture('pixels'),
          { type: 'text', text: 'a.csv:\n\nid;n' },
          { type: 'text', text: `Attached by print (call ${third}): a.pdf` },
          { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${base64('%PDF')}` } },
        ],
      },
    ]
    expect(sent(1).slice(2)).to.deep.equal(expected)
    // The same in each later request, whichever process sends it, and in what render() shows.
    const other = await (await bench.connect(options)).chats.find(chat.id)
    await other.askLater('And now?')
    const shown = (await other.render()).messages
    await other.complete()
    expect(sent(2).slice(2)).to.deep.equal([
      ...expected,
      { role: 'assistant', content: 'Done.' },
      { role: 'user', content: 'And now?' },
    ])
    expect(shown).to.deep.equal(sent(2))
    expect((await resultsById(chat))[first]?.content).to.equal('draw done')
  })

  it('may stand alone, without a text (E82)', async () => {
    const id = freshId()
    const tool = recording('draw', [], {}, ({ attach }) => attach(file('pixels', 'a.png')))
    const { chat } = await setUp([tool], [toolCalls([call('draw', id)]), text('Seen.')])
    await chat.ask('Draw')
    expect(sent(1).slice(2)).to.deep.equal([
      { role: 'tool', tool_call_id: id, content: 'Attached: a.png (image/png, 6 bytes)' },
      {
        role: 'user',
        content: [{ type: 'text', text: `Attached by draw (call ${id}): a.png` }, picture('pixels')],
      },
    ])
  })

  it('that the model can not take are converted, or else named only: the chat goes on (E82)', async () => {
    const id = freshId()
    const tool = draws('pack', [file('zip', 'a.zip'), file('words', 'a.docx')])
    const convertUnsupportedAttachments = async ({ filename }: Attachment) =>
      filename.endsWith('.docx') ? 'text of the words' : null
    const { chat } = await setUp([tool], [toolCalls([call('pack', id)]), text('Packed.'), text('Still.')], {
      convertUnsupportedAttachments,
    })
    expect((await chat.ask('Pack'))?.content).to.equal('Packed.')
    const docx = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'
    const [zipped] = (await result(chat)).attachments ?? []
    expect(sent(1).slice(2)).to.deep.equal([
      {
        role: 'tool',
        tool_call_id: id,
        content:
          `pack done\n\nAttached: a.zip (${zipped?.contentType}, 3 bytes), which can not be shown to you\n` +
          `Attached: a.docx (${docx}, 5 bytes)`,
      },
      {
        role: 'user',
        content: [
          { type: 'text', text: `Attached by pack (call ${id}): a.docx` },
          { type: 'text', text: 'a.docx:\n\ntext of the words' },
        ],
      },
    ])
    expect((await chat.ask('And now?'))?.content).to.equal('Still.')
    expect(await contents(await result(chat))).to.deep.equal([
      ['a.zip', 'zip'],
      ['a.docx', 'words'],
    ])
  })

  it('are sent to a client that takes them in its own way, and counted by one that counts (E82)', async () => {
    const seen: unknown[] = []
    const said = (messages: Parameters<ModelClient['attempt']>[0]['messages']) =>
      messages.flatMap((message) => (message.role === 'tool' ? [[message.content, message.files]] : []))
    const answer = { thinking: null, thinkingSignature: null, rawReasoning: null, citations: null, usage: null }
    const client: ModelClient = {
      provider: 'own',
      supportsAttachment: (type) => type === 'image/png',
      countTokens: async ({ messages }) => {
        seen.push(said(messages))
        return 7
      },
      async attempt({ messages }) {
        seen.push(said(messages))
        const asks = messages.length === 1
        const toolCalls = [
          { providerCallId: 'c', name: 'draw', argumentsText: '{}', arguments: {}, thoughtSignature: null },
        ]
        const says = { text: asks ? '' : 'Drawn.', toolCalls: asks ? toolCalls : [] }
        return { ...answer, ...says, finishReason: 'stop', model: null, responseId: null }
      },
    }
    const { chat } = await setUp([draws('draw', file('p', 'a.png'), file('t', 'a.txt'))], [], { client })
    await chat.ask('Draw')
    expect(await chat.countTokens('And now?')).to.equal(7)
    const shown = [
      [
        'draw done\n\nAttached: a.png (image/png, 1 bytes)\nAttached: a.txt (text/plain, 1 bytes), which can not be shown to you',
        [{ filename: 'a.png', contentType: 'image/png', base64: base64('p') }],
      ],
    ]
    expect(seen).to.deep.equal([[], shown, shown])
  })

  it('are named by the event of the result, live and from rows, without what would open them (E83)', async () => {
    const { chat } = await setUp([draws('draw', file('p', 'a.png'))], [toolCalls([call('draw')]), text('Drawn.')])
    const live = chat.events({ after: '0' })
    await chat.ask('Draw')
    const told: unknown[] = []
    for (const events of [live, chat.events()]) {
      for await (const event of events) {
        if (event.type === 'tool.result') told.push(event.attachments)
        if (event.type === 'run.finished') break
      }
    }
    const [attached] = (await result(chat)).attachments ?? []
    const shown = { id: attached?.id, filename: 'a.png', contentType: 'image/png', byteSize: 1 }
    expect(told).to.deep.equal([[shown], [shown]])
  })

  it('are seen by hooks with the stored message (E83)', async () => {
    const seen: unknown[] = []
    const { chat, mill } = await setUp([draws('draw', file('p', 'a.png'))], [toolCalls([call('draw')]), text('Drawn.')])
    chat.afterToolResult((returned) => seen.push(returned))
    chat.afterMessage(async ({ role, attachments }) => {
      if (role !== 'tool') return
      for (const one of attachments ?? []) seen.push(Buffer.from(await mill.attachment(one).bytes()).toString())
    })
    await chat.ask('Draw')
    expect(seen).to.deep.equal(['draw done', 'p'])
  })

  it('are held by a fork, go with what is removed, and are attached anew by a turn that is asked again (E83)', async () => {
    const tool = recording('draw', [], {}, ({ attach }, note) => attach(file(note ?? '', 'a.txt')))
    const { chat, kept, mill } = await setUp(
      [tool],
      [
        toolCalls([call('draw', undefined, { note: 'first' })]),
        text('One.'),
        toolCalls([call('draw', undefined, { note: 'second' })]),
        text('Two.'),
      ],
    )
    await chat.ask('Draw')
    const fork = await mill.chats.fork(chat)
    await chat.regenerate()
    await chat.complete()
    expect(await kept()).to.have.length(2)
    expect(await contents(await result(chat))).to.deep.equal([['a.txt', 'second']])
    await chat.delete()
    expect(await kept()).to.have.length(1)
    expect(await contents(await result(fork))).to.deep.equal([['a.txt', 'first']])
    await mill.chats.delete(fork.id)
    expect(await kept()).to.have.length(0)
  })

  it('are sent to whoever summarises them, and not any more once they are (E82)', async () => {
    const { chat } = await setUp(
      [draws('draw', file('pixels'.repeat(100), 'a.png'))],
      [toolCalls([call('draw')]), text('Drawn. '.repeat(50)), text('Short.'), text('Still.')],
    )
    await chat.ask('Draw')
    await chat.compact({ keep: 0 })
    const shown = sent(2)[3]
    expect([shown?.role, JSON.stringify(shown).includes(base64('pixels'.repeat(100)))]).to.deep.equal(['user', true])
    await chat.ask('And now?')
    expect(JSON.stringify(sent(3))).to.not.match(/a\.png|image_url/)
    expect((await result(chat)).attachments).to.have.length(1)
  })

  it('can be added by hand with a result, and come along with a copied one (E83)', async () => {
    const [id, other] = [freshId(), freshId()]
    const { chat, kept, mill } = await setUp([], [text('Seen.')])
    await chat.addMessage({ role: 'user', content: 'Draw' })
    await chat.addMessage({ role: 'assistant', toolCalls: [{ id, name: 'draw' }] })
    const answer = { role: 'tool', content: 'drawn', toolCallId: id } as const
    for (const attachments of [7, [file('x', 'a.png'), 'no/such/file'], file('x'.repeat(1_001), 'a.png')]) {
      const act = () => chat.addMessage({ ...answer, attachments: attachments as never })
      expect(await errorFrom(act)).to.be.instanceOf(AttachmentError)
    }
    const nowhere = () => chat.addMessage({ ...answer, toolCallId: 'nobody', attachments: file('x', 'a.png') })
    expect(await errorFrom(nowhere)).to.be.instanceOf(ArgumentError)
    expect([await kept(), await chat.messages()].map(({ length }) => length)).to.deep.equal([0, 2])
    const record = await chat.addMessage({ ...answer, attachments: file('pixels', 'a.png') })
    // The first result stays as it is, and nothing of the second is kept.
    const again = await chat.addMessage({ ...answer, attachments: file('others', 'b.png') })
    expect([again.id, again.attachments?.length]).to.deep.equal([record.id, 1])
    expect(await kept()).to.have.length(1)
    await chat.complete()
    expect(sent(0).at(-1)?.content).to.deep.equal([
      { type: 'text', text: `Attached by draw (call ${id}): a.png` },
      picture('pixels'),
    ])
    const copy = await mill.chats.create()
    await copy.addMessage({ role: 'assistant', toolCalls: [{ id: other, name: 'draw' }] })
    const value = await record.toLlm()
    await copy.addMessage({
      ...value,
      role: 'tool',
      content: 'drawn',
      toolCallId: other,
      attachments: record.attachments,
    })
    expect(await contents(await result(copy))).to.deep.equal([['a.png', 'pixels']])
    await chat.delete()
    expect(await contents(await result(copy))).to.deep.equal([['a.png', 'pixels']])
  })
})
