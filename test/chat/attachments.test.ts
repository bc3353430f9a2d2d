import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pathToFileURL } from 'node:url'
import { expect } from 'chai'
import {
  ArgumentError,
  Attachment,
  AttachmentError,
  type AttachmentSource,
  ConfigurationError,
  type ConnectOptions,
  defineAgent,
  diskStore,
  UnsupportedAttachmentError,
} from '../../src/index.ts'
import { text } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { errorFrom } from '../tools/rows.ts'
import { freshName } from './support/tools.ts'

onEachDatabase('Attachments', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })
  let folder = ''
  let server: Server | undefined
  let host = ''
  /** What was asked for and given up before its end. */
  const left: string[] = []

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'threadmill-attachments-'))
    server = createServer((request, response) => {
      if (request.url === '/moved.png') response.writeHead(302, { location: '/cat.png' }).end()
      else if (request.url === '/cat.png') response.writeHead(200, { 'content-type': 'image/png' }).end('from a URL')
      else if (request.url === '/endless.png') {
        response.once('close', () => left.push('endless.png'))
        response.writeHead(404).write('there is more to come')
      } else if (request.url === '/huge.png') {
        response.once('close', () => left.push('huge.png'))
        response.writeHead(200, { 'content-length': 1_000_000 }).write('there is more to come')
      } else response.writeHead(404).end()
    })
    await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve))
    host = `127.0.0.1:${(server.address() as { port: number }).port}`
  })
  after(async () => {
    server?.closeAllConnections()
    await new Promise((resolve) => server?.close(resolve))
    await rm(folder, { recursive: true })
  })

  const setUp = async (options: ConnectOptions = {}) => {
    await bench.script(() => text('I see.'))
    const blobs = await mkdtemp(join(folder, 'blobs-'))
    const attachments = { store: diskStore(blobs), allowHosts: [host], maxBytes: 1_000 }
    const mill = await bench.connect({ attachments, ...options })
    const kept = async () => (await readdir(blobs, { recursive: true })).filter((name) => /[0-9a-f]{64}$/.test(name))
    return { mill, blobs, kept, chat: await mill.chats.create() }
  }
  const parts = () => bench.model.requests.at(-1)?.messages.at(-1)?.content as unknown as Record<string, never>[]
  const png = (data = 'pixels', filename = 'cat.png') => ({ data: Buffer.from(data), filename })

  it('that are refused for what their server says leave no connection open (E150)', async () => {
    const { chat } = await setUp()
    for (const name of ['endless.png', 'huge.png']) {
      const error = await errorFrom(() => chat.askLater('See this', { attachments: `http://${host}/${name}` }))
      expect(error).to.be.instanceOf(AttachmentError)
      await until(`nobody waits for ${name}`, () => left.includes(name))
    }
    expect(await chat.messages()).to.deep.equal([])
  })

  it('come from paths, URLs, bytes, streams and blobs; blank ones are left out (B89)', async () => {
    const { chat } = await setUp()
    const path = join(folder, 'notes.txt')
    await writeFile(path, 'from a path')
    const sources: AttachmentSource[] = [
      path,
      pathToFileURL(path),
      `http://${host}/cat.png`,
      null,
      '',
      new Uint8Array([1, 2]),
      { data: Readable.from([Buffer.from('from '), Buffer.from('a stream')]), filename: 'a.md' },
      { data: new Blob(['web']).stream(), filename: 'b.md', contentType: 'text/x-own; charset=utf-8' },
      new File(['a file'], 'c.csv', { type: 'text/csv' }),
      new Blob(['a blob'], { type: 'application/json' }),
    ]
    await chat.askLater('See these', { attachments: sources })
    const [message] = await chat.messages()
    const files = message?.attachments ?? []
    const seen = await Promise.all(
      files.map(async (one) => [one.filename, one.contentType, Buffer.from(await one.bytes()).toString()]),
    )
    expect(seen).to.deep.equal([
      ['notes.txt', 'text/plain', 'from a path'],
      ['notes.txt', 'text/plain', 'from a path'],
      ['cat.png', 'image/png', 'from a URL'],
      ['attachment', 'application/octet-stream', '\u0001\u0002'],
      ['a.md', 'text/markdown', 'from a stream'],
      ['b.md', 'text/x-own', 'web'],
      ['c.csv', 'text/csv', 'a file'],
      ['attachment', 'application/json', 'a blob'],
    ])
    expect(files[0]).to.be.instanceOf(Attachment)
    expect(files[0]?.digest).to.equal(files[1]?.digest)
  })

  it('are sent with their message, each time the same, by whichever process (B86, B89)', async () => {
    const { chat, mill } = await setUp()
    const attachments = [
      png(),
      { data: Buffer.from('%PDF'), filename: 'a.pdf' },
      { data: Buffer.from('id;n'), filename: 'a.csv' },
      { data: Buffer.from('la'), filename: 'a.mp3' },
    ]
    await chat.askLater('What is it?', { attachments })
    await (await mill.chats.find(chat.id)).complete()
    const expected = [
      { type: 'text', text: 'What is it?' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${Buffer.from('pixels').toString('base64')}` } },
      {
        type: 'file',
        file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${Buffer.from('%PDF').toString('base64')}` },
      },
      { type: 'text', text: 'a.csv:\n\nid;n' },
      { type: 'input_audio', input_audio: { data: Buffer.from('la').toString('base64'), format: 'mp3' } },
    ]
    expect(parts()).to.deep.equal(expected)
    await chat.ask('And now?')
    expect(bench.model.requests.at(-1)?.messages[0]?.content).to.deep.equal(expected)
    const rows = JSON.stringify(await mill.models.Message.findAll({ where: { chatId: chat.id } }))
    expect(rows).to.not.match(/base64|https?:/)
  })

  it('may stand alone, and are stored once however often they are attached (B88)', async () => {
    const { chat, kept } = await setUp()
    await chat.ask(null, { attachments: png() })
    expect(parts()).to.have.length(1)
    await chat.addMessage({ role: 'user', content: 'Again', attachments: [png()] })
    await chat.addMessage({ role: 'user', content: 'And another', attachments: [png('other')] })
    expect(await kept()).to.have.length(2)
    expect((await chat.messages()).map(({ attachments }) => attachments?.length ?? 0)).to.deep.equal([1, 0, 1, 1])
  })

  it('of a queued message become the message’s, without being stored again (S53)', async () => {
    const { chat, mill, kept } = await setUp()
    const queued = await chat.queue('Look', { attachments: [png('one'), png('two')] })
    expect(queued.attachments?.map(({ filename }) => filename)).to.deep.equal(['cat.png', 'cat.png'])
    await chat.complete()
    const [message] = await chat.messages()
    expect(message?.attachments?.map(({ digest }) => digest)).to.deep.equal(
      queued.attachments?.map(({ digest }) => digest),
    )
    expect(parts()).to.have.length(3)
    expect(await kept()).to.have.length(2)
    await chat.queue('First', { attachments: png('three') })
    await chat.ask('Second')
    expect((await chat.messages())[2]?.attachments).to.have.length(1)
    expect(await mill.models.QueuedMessage.count({ where: { chatId: chat.id } })).to.equal(0)
  })

  it('of a message that is taken back are removed, unless another holds them (S54)', async () => {
    const { chat, kept } = await setUp()
    await chat.askLater('Keep', { attachments: png('kept') })
    const queued = await chat.queue('No', { attachments: [png('kept'), png('gone')] })
    expect(await kept()).to.have.length(2)
    expect([await chat.unqueue(queued), await chat.unqueue(queued)]).to.deep.equal([true, false])
    expect(await kept()).to.have.length(1)
    expect(Buffer.from((await (await chat.messages())[0]?.attachments?.[0]?.bytes()) ?? []).toString()).to.equal('kept')
    const again = await chat.queue('Yes', { attachments: png('gone') })
    expect(await kept()).to.have.length(2)
    expect(await chat.unqueue(again.id), 'by its id').to.equal(true)
    expect(await kept()).to.have.length(1)
  })

  it('that can not be had are refused, and leave every row as it was', async () => {
    const { chat, mill } = await setUp()
    const bad: readonly AttachmentSource[] = [
      join(folder, 'nowhere.txt'),
      `http://${host}/nowhere.png`,
      `http://${host}/moved.png`,
      'https://elsewhere.example/cat.png',
      png('x'.repeat(1_001)),
      { data: Readable.from([Buffer.alloc(600), Buffer.alloc(600)]) },
      { data: 7 } as never,
      7 as never,
    ]
    for (const source of bad) {
      for (const act of [
        () => chat.askLater('See', { attachments: [png(), source] }),
        () => chat.queue('See', { attachments: source }),
        () => chat.addMessage({ role: 'user', content: 'See', attachments: source }),
      ]) {
        expect(await errorFrom(act)).to.be.instanceOf(AttachmentError)
      }
    }
    for (const act of [
      () => chat.askLater(null),
      () => chat.askLater('', { attachments: [null, ''] }),
      () => chat.queue(null),
    ]) {
      expect(await errorFrom(act)).to.be.instanceOf(ArgumentError)
    }
    expect(await chat.messages()).to.deep.equal([])
    expect(await chat.queuedMessages()).to.deep.equal([])
    const [rows] = await mill.sequelize.query('SELECT * FROM threadmill_blobs WHERE digest = ?', {
      replacements: ['x'],
    })
    expect(rows).to.deep.equal([])
    for (const options of [{ store: {} }, { maxBytes: 0 }, { allowHosts: 'x' }, { hosts: [] }]) {
      expect(await errorFrom(() => bench.connect({ attachments: options as never }))).to.be.instanceOf(
        ConfigurationError,
      )
    }
  })

  it('that the model can not take are converted, once, or refused before anything is sent', async () => {
    const converted: string[] = []
    const agent = defineAgent({
      name: freshName(),
      convertUnsupportedAttachments: [
        () => null,
        async (attachment) => {
          converted.push(attachment.filename)
          return attachment.filename.endsWith('.docx')
            ? `text of ${Buffer.from(await attachment.bytes()).toString()}`
            : null
        },
      ],
    })
    const { mill } = await setUp({ agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.ask('Read', { attachments: { data: Buffer.from('words'), filename: 'a.docx' } })
    expect(parts()[1]).to.deep.equal({ type: 'text', text: 'a.docx:\n\ntext of words' })
    await chat.ask('Again')
    expect(converted).to.deep.equal(['a.docx'])
    expect((await chat.messages())[0]?.attachments?.[0]?.contentType).to.match(/wordprocessingml/)
    const sent = bench.model.requests.length
    await chat.askLater('And this', { attachments: { data: Buffer.from('z'), filename: 'a.zip' } })
    expect(await errorFrom(() => chat.complete())).to.be.instanceOf(UnsupportedAttachmentError)
    expect(await errorFrom(() => chat.render())).to.be.instanceOf(UnsupportedAttachmentError)
    expect(bench.model.requests).to.have.length(sent)
    chat.convertUnsupportedAttachments(() => ({ filename: 'a.png', contentType: 'image/png', data: Buffer.from('p') }))
    expect((await chat.complete())?.content).to.equal('I see.')
    expect(await errorFrom(() => chat.convertUnsupportedAttachments(7 as never))).to.be.instanceOf(ArgumentError)
  })

  it('go with an edit and with their chat, and are held by a fork (E54, E55, E64)', async () => {
    const { chat, mill, kept } = await setUp()
    await chat.ask('First', { attachments: png('first') })
    await chat.ask('Second', { attachments: png('second') })
    const fork = await mill.chats.fork(chat)
    await chat.regenerate({ at: (await chat.messages())[0]?.id ?? '' })
    expect(await kept()).to.have.length(2)
    await chat.delete()
    expect(await kept()).to.have.length(2)
    const [question] = await fork.messages()
    expect(Buffer.from((await question?.attachments?.[0]?.bytes()) ?? []).toString()).to.equal('first')
    await fork.edit(question?.id ?? '', 'Only this')
    expect(await kept()).to.have.length(1)
    await fork.delete()
    expect(await kept()).to.have.length(0)
  })
})
