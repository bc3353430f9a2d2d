import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { expect } from 'chai'
import {
  ArgumentError,
  AttachmentError,
  type AttachmentValue,
  type BlobStore,
  type Chat,
  ChatNotFoundError,
  type ConnectOptions,
  diskStore,
  type Threadmill,
} from '../../src/index.ts'
import { text } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { errorFrom } from '../tools/rows.ts'

onEachDatabase('Files that come and go', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })
  let folder = ''
  let mill: Threadmill

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'threadmill-files-'))
  })
  after(() => rm(folder, { recursive: true }))

  const setUp = async (store: (disk: BlobStore) => BlobStore = (disk) => disk, options: ConnectOptions = {}) => {
    await bench.script(() => text('I see.'))
    const blobs = await mkdtemp(join(folder, 'blobs-'))
    mill = await bench.connect({ attachments: { store: store(diskStore(blobs)) }, ...options })
    const kept = async () => (await readdir(blobs, { recursive: true })).filter((name) => /[0-9a-f]{64}$/.test(name))
    return { kept, chat: await mill.chats.create() }
  }
  const file = (data: string) => ({ data: Buffer.from(data), filename: 'a.txt' })
  const holders = async (): Promise<number[]> => {
    const [rows] = await mill.sequelize.query('SELECT holders FROM threadmill_blobs ORDER BY holders')
    return (rows as { holders: number }[]).map((row) => row.holders)
  }

  it('stay for whoever attaches them while the last message with them is taken back (E61)', async () => {
    let other: Chat | undefined
    let adding: Promise<unknown> | undefined
    const { chat } = await setUp((disk) => ({
      ...disk,
      async delete(digest) {
        let added = false
        adding = other?.askLater('Me too', { attachments: file('shared') }).then(() => {
          added = true
        })
        // Time enough to attach it, unless that waits for this deletion.
        await until('it is attached', () => added, 700).catch(() => {})
        await disk.delete(digest)
      },
    }))
    other = await mill.chats.create()
    expect(await chat.unqueue(await chat.queue('Look', { attachments: file('shared') }))).to.equal(true)
    await adding
    const [message] = await other.messages()
    expect(Buffer.from((await message?.attachments?.[0]?.bytes()) ?? []).toString()).to.equal('shared')
    expect(await holders()).to.deep.equal([1])
  })

  it('stay for whoever has stored them and not yet their message when the last other one is taken back (E61)', async () => {
    let takeBack: (() => Promise<unknown>) | undefined
    const { chat, kept } = await setUp((disk) => ({
      ...disk,
      has: async (digest) => {
        const act = takeBack
        const there = await disk.has(digest)
        takeBack = undefined
        await act?.()
        return there
      },
    }))
    const queued = await chat.queue('Look', { attachments: file('between') })
    const other = await mill.chats.create()
    const seen: (boolean | number)[] = []
    takeBack = async () => {
      seen.push(await chat.unqueue(queued), (await kept()).length)
    }
    await other.askLater('Me too', { attachments: file('between') })
    // They were there, so they were not stored anew, and gone right after.
    expect(seen).to.deep.equal([true, 0])
    const [message] = await other.messages()
    expect(Buffer.from((await message?.attachments?.[0]?.bytes()) ?? []).toString()).to.equal('between')
  })

  it('are gone again with a message that could not be stored, but for those that another holds (B88, E62)', async () => {
    const { chat, kept } = await setUp()
    await chat.askLater('Keep', { attachments: file('kept') })
    const gone = await mill.chats.create()
    await mill.models.Chat.destroy({ where: { id: gone.id } })
    for (const act of [
      () => gone.askLater('No', { attachments: [file('kept'), file('new')] }),
      () => gone.queue('No', { attachments: file('new') }),
      () => gone.addMessage({ role: 'user', content: 'No', attachments: file('new') }),
    ]) {
      expect(await errorFrom(act)).to.be.instanceOf(ChatNotFoundError)
      expect(await kept()).to.have.length(1)
      expect((await holders()).at(-1)).to.equal(1)
    }
    let broken = true
    const failing = await setUp((disk) => ({
      ...disk,
      put: async (digest, bytes) => {
        if (broken) throw new Error('the disk is full')
        await disk.put(digest, bytes)
      },
    }))
    expect(await errorFrom(() => failing.chat.askLater('No', { attachments: file('full') }))).to.match(/disk is full/)
    expect(await failing.chat.messages()).to.deep.equal([])
    broken = false
    await failing.chat.askLater('Yes', { attachments: file('full') })
    expect(await failing.kept()).to.have.length(1)
  })

  it('that could not be removed are purged later, and what is held never is (E62)', async () => {
    const notices: string[] = []
    let away = true
    const { chat, kept } = await setUp(
      (disk) => ({
        ...disk,
        delete: async (digest) => {
          if (away) throw new Error('a secret of the store')
          await disk.delete(digest)
        },
      }),
      { onObservation: (seen) => (seen.type === 'notice' ? notices.push(seen.message) : undefined) },
    )
    await chat.askLater('Keep', { attachments: file('purge kept') })
    const queued = await chat.queue('No', { attachments: [file('purge kept'), file('purge gone')] })
    expect(await chat.unqueue(queued)).to.equal(true)
    expect(notices.filter((notice) => notice.includes('stays in the store'))).to.have.length(1)
    expect(notices.join()).not.to.include('secret')
    expect(await errorFrom(() => mill.purgeAttachments({ unusedForMs: 0 }))).to.match(/a secret of the store/)
    for (const unusedForMs of [-1, Number.NaN, 'soon' as never]) {
      expect(await errorFrom(() => mill.purgeAttachments({ unusedForMs }))).to.be.instanceOf(ArgumentError)
    }
    away = false
    expect(await mill.purgeAttachments()).to.equal(0)
    expect(await kept()).to.have.length(2)
    expect(await mill.purgeAttachments({ unusedForMs: 0 })).to.equal(1)
    expect(await mill.purgeAttachments({ unusedForMs: 0 })).to.equal(0)
    expect(await kept()).to.have.length(1)
  })

  it('are part of the application’s transaction, as their message is (E62)', async () => {
    const { chat, kept } = await setUp()
    await mill.transaction(async (transaction) => {
      await chat.askLater('Yes', { attachments: file('joined'), transaction })
    })
    expect((await chat.messages())[0]?.attachments).to.have.length(1)
    const before = await holders()
    const act = () =>
      mill.transaction(async (transaction) => {
        await chat.queue('No', { attachments: file('joined'), transaction })
        throw new Error('undone')
      })
    expect(await errorFrom(act)).to.match(/undone/)
    expect(await holders()).to.deep.equal(before)
    expect(await kept()).to.have.length(1)
  })

  it('of a chat go with it, its queued messages’ too, but for those that another chat holds (E53, E64)', async () => {
    const { chat, kept } = await setUp()
    const other = await mill.chats.create()
    await other.askLater('Mine', { attachments: file('both') })
    await chat.askLater('Twice', { attachments: [file('both'), file('both'), file('one')] })
    await chat.addMessage({ role: 'user', content: 'Again', attachments: file('one') })
    await chat.queue('Waiting', { attachments: file('queued') })
    expect(await kept()).to.have.length(3)
    await chat.delete()
    expect(await kept()).to.have.length(1)
    expect(Buffer.from((await (await other.messages())[0]?.attachments?.[0]?.bytes()) ?? []).toString()).to.equal(
      'both',
    )
    await mill.chats.delete(other.id)
    expect(await kept()).to.have.length(0)
  })

  it('of a fork are its own too: they stay when the old chat goes, and go with the fork (E54, E64)', async () => {
    const { chat, kept } = await setUp()
    await chat.ask('Look', { attachments: [file('forked'), file('forked')] })
    const fork = await mill.chats.fork(chat)
    await chat.delete()
    expect(await mill.purgeAttachments({ unusedForMs: 0 })).to.equal(0)
    const files = (await fork.messages())[0]?.attachments ?? []
    expect(files.map(({ filename }) => filename)).to.deep.equal(['a.txt', 'a.txt'])
    for (const one of files) expect(Buffer.from(await one.bytes()).toString()).to.equal('forked')
    await fork.delete()
    expect(await kept()).to.have.length(0)
  })

  it('of messages behind an edited question go with them, the question’s stay (E55, E64)', async () => {
    const { chat, kept } = await setUp()
    await chat.ask('First', { attachments: file('of the question') })
    await chat.ask('Second', { attachments: file('behind it') })
    const [question] = await chat.messages()
    await chat.edit(question?.id ?? '', 'First, again')
    expect(await kept()).to.have.length(1)
    await chat.complete()
    const [edited] = await chat.messages()
    expect(edited?.content).to.equal('First, again')
    const bytes = await edited?.attachments?.[0]?.bytes()
    expect(Buffer.from(bytes ?? []).toString()).to.equal('of the question')
  })

  it('are not forked from a message that is being removed: the fork is to be made again (E64)', async () => {
    const { chat } = await setUp()
    await chat.askLater('Look', { attachments: file('half gone') })
    const [message] = await chat.messages()
    const digest = message?.attachments?.[0]?.digest
    await mill.sequelize.query('UPDATE threadmill_blobs SET holders = 0 WHERE digest = ?', { replacements: [digest] })
    const chats = await mill.models.Chat.count()
    expect(await errorFrom(() => mill.chats.fork(chat))).to.be.instanceOf(AttachmentError)
    expect(await mill.models.Chat.count()).to.equal(chats)
  })

  it('of another message can be attached again, and come along with a copied record (E65)', async () => {
    let puts = 0
    const { chat } = await setUp((disk) => ({
      ...disk,
      put: async (digest, bytes) => {
        puts += 1
        await disk.put(digest, bytes)
      },
    }))
    const record = await chat.addMessage({ role: 'user', content: 'First', attachments: file('passed on') })
    const [message] = await chat.messages()
    const other = await mill.chats.create()
    await other.askLater('Second', { attachments: message?.attachments })
    await other.addMessage(record)
    const copies = (await other.messages()).map(({ attachments }) => attachments?.[0])
    expect(copies.map((copy) => copy?.filename)).to.deep.equal(['a.txt', 'a.txt'])
    expect(new Set([...copies, message?.attachments?.[0]].map((one) => one?.id)).size).to.equal(3)
    expect(new Set(copies.map((copy) => copy?.digest)).size).to.equal(1)
    const queued = await chat.queue('Third', { attachments: record.attachments })
    const [value] = queued.attachments ?? []
    expect(value && Buffer.from(await mill.attachment(value).bytes()).toString()).to.equal('passed on')
    expect(puts).to.equal(1)
    for (const digest of ['0'.repeat(64), '../../etc/passwd']) {
      const act = () => chat.askLater('No', { attachments: { ...(value as AttachmentValue), digest } })
      expect(await errorFrom(act)).to.be.instanceOf(AttachmentError)
    }
    expect(() => mill.attachment({ ...(value as AttachmentValue), digest: '../../etc/passwd' })).to.throw(
      AttachmentError,
    )
  })

  it('are read from the store once in a process, and only when they are needed (E63)', async () => {
    let gets = 0
    const { chat } = await setUp((disk) => ({
      ...disk,
      get: async (digest) => {
        gets += 1
        return disk.get(digest)
      },
    }))
    await chat.askLater('Look', { attachments: file('read once') })
    const [message] = await chat.messages()
    expect(gets).to.equal(0)
    await chat.complete()
    await chat.ask('Again')
    const bytes = await message?.attachments?.[0]?.bytes()
    // The caller's own: what is done to them is not seen by the next.
    bytes?.fill(0)
    expect(Buffer.from((await message?.attachments?.[0]?.bytes()) ?? []).toString()).to.equal('read once')
    expect(gets).to.equal(1)
  })

  it('come from streams of text and of the web as well, and from no URL that is none (B89)', async () => {
    const { chat } = await setUp()
    const attachments = [Readable.from(['für ', 'alle']), new Blob(['web']).stream() as ReadableStream<Uint8Array>]
    await chat.askLater('See', { attachments })
    const files = (await chat.messages())[0]?.attachments ?? []
    const texts = await Promise.all(files.map(async (one) => Buffer.from(await one.bytes()).toString()))
    expect(texts).to.deep.equal(['für alle', 'web'])
    expect(await errorFrom(() => chat.askLater('No', { attachments: 'http://' }))).to.be.instanceOf(AttachmentError)
  })
})
