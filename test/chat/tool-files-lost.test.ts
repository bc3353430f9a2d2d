import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { expect } from 'chai'
import * as z from 'zod'
import {
  AttachmentError,
  type BlobStore,
  CancelledError,
  type ConnectOptions,
  defineAgent,
  defineTool,
  diskStore,
  StateError,
  type Threadmill,
  type Tool,
  ToolCallEndedError,
  type ToolContext,
  ToolError,
} from '../../src/index.ts'
import { text, toolCalls } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { deferred, errorFrom } from '../tools/rows.ts'
import { abandon, lastCall, resultsById } from './support/rows.ts'
import { call, freshId, freshName, recording } from './support/tools.ts'

onEachDatabase('Files of a tool that come to nothing', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 30_000 })
  let folder = ''
  let mill: Threadmill
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'threadmill-lost-files-'))
  })
  after(() => rm(folder, { recursive: true }))

  interface More extends ConnectOptions {
    readonly concurrency?: number
    readonly store?: (disk: BlobStore) => BlobStore
  }
  const setUp = async (tools: readonly Tool[], replies: Parameters<typeof bench.script>[0], more: More = {}) => {
    const { concurrency = 1, store = (disk) => disk, ...rest } = more
    await bench.script(replies)
    const agent = defineAgent({ name: freshName(), tools, retries: 0, concurrency })
    const blobs = await mkdtemp(join(folder, 'blobs-'))
    const options = { agents: [agent], attachments: { store: store(diskStore(blobs)), maxBytes: 1_000 }, ...rest }
    mill = await bench.connect(options)
    const kept = async () => (await readdir(blobs, { recursive: true })).filter((name) => /[0-9a-f]{64}$/.test(name))
    return { options, kept, chat: await mill.chats.create({ agent }) }
  }
  const file = (data: string) => ({ data: Buffer.from(data), filename: `${data}.txt` })
  const names = async (chat: { messages(): Promise<{ role: string; attachments: { filename: string }[] | null }[]> }) =>
    (await chat.messages()).flatMap(({ role, attachments }) =>
      role === 'tool' ? [(attachments ?? []).map(({ filename }) => filename)] : [],
    )

  const failures: readonly [string, Parameters<typeof recording>[2], () => unknown][] = [
    ['throws for the model', {}, () => Promise.reject(new ToolError('no'))],
    ['returns an error', {}, () => ({ error: 'no' })],
    ['throws', {}, () => Promise.reject(new Error('a bug'))],
    ['throws what is reported', { onError: 'report' }, () => Promise.reject(new Error('a bug'))],
    ['takes too long', { timeoutMs: 50 }, () => new Promise(() => {})],
  ]
  for (const [what, options, end] of failures) {
    it(`are not kept of one that ${what} (E81)`, async () => {
      const tool = recording('draw', [], options, async ({ attach }) => {
        await attach([file('one'), file('two')])
        return end()
      })
      const { chat, kept } = await setUp([tool], [toolCalls([call('draw')]), text('Went on.')])
      await chat.ask('Draw').catch(() => chat.complete())
      expect(await names(chat)).to.deep.equal([[]])
      expect(await kept()).to.deep.equal([])
      expect(await mill.purgeAttachments({ unusedForMs: 0 })).to.equal(0)
      expect(JSON.stringify(bench.model.requests.at(-1)?.messages)).to.not.match(/Attached/)
    })
  }

  it('are kept of one that ends well after a cancel, and not of one that does not (E81)', async () => {
    const begun = [deferred<void>(), deferred<void>()]
    const cancelled = async (at: number, signal: AbortSignal) => {
      begun[at]?.resolve()
      await until('the stop', () => signal.aborted)
    }
    const heeds = recording('heeds', [], {}, async ({ attach, signal }) => {
      await attach(file('whole'))
      await cancelled(0, signal)
      return 'whole'
    })
    const breaks = recording('breaks', [], {}, async ({ attach, signal }) => {
      await attach(file('half'))
      await cancelled(1, signal)
      throw signal.reason
    })
    const replies = [toolCalls([call('heeds'), call('breaks')])]
    const { chat, kept } = await setUp([heeds, breaks], replies, { concurrency: 2 })
    const ended = errorFrom(() => chat.ask('Draw'))
    await Promise.all(begun.map(({ promise }) => promise))
    await chat.cancel()
    expect(await ended).to.be.instanceOf(CancelledError)
    expect((await names(chat)).flat()).to.deep.equal(['whole.txt'])
    expect(await kept()).to.have.length(1)
  })

  it('are not kept of one that asks: the run that has the answer attaches them (E81)', async () => {
    const id = freshId()
    const tool = recording('draw', [], {}, async ({ attach, ask }) => {
      await attach(file('before'))
      const { size } = await ask({ message: 'How large?', fields: [{ name: 'size', type: 'integer' }] })
      await attach(file(`size-${size}`))
      return 'drawn'
    })
    const { chat, kept, options } = await setUp([tool], [toolCalls([call('draw', id)]), text('Drawn.')])
    await chat.ask('Draw')
    expect([await chat.awaitingInput(), (await kept()).length]).to.deep.equal([true, 0])
    const other = await (await bench.connect(options)).chats.find(chat.id)
    const [question] = await other.pendingInputs()
    await other.answer(question ?? '', { size: 7 })
    await other.complete()
    expect(await names(chat)).to.deep.equal([['before.txt', 'size-7.txt']])
    expect(await kept()).to.have.length(2)
  })

  it('are not kept of one that begins a task: the look that ends it attaches them (E81)', async () => {
    let looks = 0
    const tool = defineTool({
      name: 'draw',
      description: 'Draws.',
      parameters: z.object({}),
      async execute(_args, { attach, task }) {
        await attach(file('begun'))
        return task({ id: 'job', pollMs: 60_000 })
      },
      async resume({ id }, { attach, task }) {
        await attach(file(`look-${++looks}`))
        return looks === 1 ? task({ id, pollMs: 60_000 }) : 'drawn'
      },
    })
    const { chat, kept } = await setUp([tool], [toolCalls([call('draw')]), text('Drawn.')])
    await chat.ask('Draw')
    await chat.complete()
    expect([await chat.awaitingTasks(), looks, (await kept()).length]).to.deep.equal([true, 1, 0])
    await chat.complete()
    expect([await names(chat), (await kept()).length]).to.deep.equal([[['look-2.txt']], 1])
  })

  it('are refused once the call is over, and those under way then are deleted again (E81)', async () => {
    let late: ToolContext | undefined
    const reading = deferred<void>()
    const rest = deferred<void>()
    const outcome = deferred<unknown>()
    const tool = recording('draw', [], { timeoutMs: 300 }, async (context) => {
      late = context
      async function* slowly() {
        reading.resolve()
        await rest.promise
        yield Buffer.from('slow')
      }
      context.attach({ data: Readable.from(slowly()) }).catch((error: unknown) => outcome.resolve(error))
      await new Promise(() => {})
    })
    const { chat, kept } = await setUp([tool], [toolCalls([call('draw')]), text('Went on.')])
    await chat.ask('Draw')
    await reading.promise
    rest.resolve()
    const error = await outcome.promise
    expect(error).to.be.instanceOf(ToolCallEndedError).and.instanceOf(StateError)
    expect(error).to.include({ code: 'tool_call.ended', chatId: chat.id })
    expect(await errorFrom(() => late?.attach(file('late')))).to.be.instanceOf(ToolCallEndedError)
    expect([await names(chat), await kept()]).to.deep.equal([[[]], []])
  })

  it('that are not awaited are waited for, and what they throw is the tool’s (E80)', async () => {
    const [good, bad] = [freshId(), freshId()]
    async function* slowly() {
      await new Promise((resolve) => setImmediate(resolve))
      yield Buffer.from('slow')
    }
    const tools = [
      recording('good', [], {}, ({ attach }) => {
        void attach({ data: Readable.from(slowly()), filename: 'slow.txt' })
        return 'done'
      }),
      recording('bad', [], { onError: 'report' }, ({ attach }) => {
        void attach([file('fine'), join(folder, 'nowhere.txt')])
        return 'done'
      }),
    ]
    const calls = [call('good', good), call('bad', bad)]
    const { chat, kept } = await setUp(tools, [toolCalls(calls), text('Went on.')])
    await chat.ask('Draw')
    const results = await resultsById(chat)
    expect([results[good]?.outcome, results[bad]?.outcome]).to.deep.equal(['succeeded', 'failed'])
    expect(results[bad]?.content).to.match(/nowhere\.txt can't be attached/)
    expect(await names(chat)).to.deep.equal([['slow.txt'], []])
    expect(await kept()).to.have.length(1)
  })

  it('that can not be had are an error that the tool may take, as of a question (E80)', async () => {
    const seen: unknown[] = []
    let full = false
    const tool = recording('draw', [], {}, async ({ attach }) => {
      const bad = [
        join(folder, 'nowhere.txt'),
        'https://elsewhere.example/a.png',
        file('x'.repeat(1_001)),
        7,
        { data: 7 },
      ]
      for (const one of bad) seen.push(await errorFrom(() => attach([file('beside it'), one as never])))
      full = true
      seen.push(await errorFrom(() => attach(file('full'))))
      full = false
      await attach(file('whole'))
      return 'drawn'
    })
    const store = (disk: BlobStore): BlobStore => ({
      ...disk,
      async put(digest, bytes) {
        if (full) throw new Error('the disk is full')
        await disk.put(digest, bytes)
      },
    })
    const { chat, kept } = await setUp([tool], [toolCalls([call('draw')]), text('Drawn.')], { store })
    await chat.ask('Draw')
    for (const error of seen.slice(0, -1)) expect(error).to.be.instanceOf(AttachmentError)
    expect(seen.at(-1)).to.match(/disk is full/)
    expect([await names(chat), (await kept()).length]).to.deep.equal([[['whole.txt']], 1])
    expect(await mill.purgeAttachments({ unusedForMs: 0 })).to.equal(0)
  })

  it('are there with the result although the last message with the same file went in between (E61)', async () => {
    let takeBack: (() => Promise<unknown>) | undefined
    const seen: unknown[] = []
    const tool = recording('draw', [], {}, async ({ attach }) => {
      await attach(file('shared'))
      await takeBack?.()
      return 'drawn'
    })
    const { chat, kept } = await setUp([tool], [toolCalls([call('draw')]), text('Drawn.')])
    const other = await mill.chats.create()
    const queued = await other.queue('Look', { attachments: file('shared') })
    takeBack = async () => seen.push(await other.unqueue(queued), (await kept()).length)
    await chat.ask('Draw')
    expect(seen).to.deep.equal([true, 0])
    const message = (await chat.messages()).find(({ role }) => role === 'tool')
    expect(Buffer.from((await message?.attachments?.[0]?.bytes()) ?? []).toString()).to.equal('shared')
    expect(await mill.purgeAttachments({ unusedForMs: 0 })).to.equal(0)
  })

  it('are left to be purged where the claim was lost, and the process that has it stores its own (E81)', async () => {
    const runs: string[] = []
    const begun = deferred<void>()
    const tool = recording('draw', runs, {}, async ({ attach }) => {
      await attach(file(`run-${runs.length}`))
      if (runs.length > 1) return 'drawn'
      begun.resolve()
      return new Promise(() => {})
    })
    const replies = [toolCalls([call('draw')]), text('Drawn.')]
    const { chat, kept, options } = await setUp([tool], replies, { claimTtlMs: 6_000, claimRenewMs: 200 })
    const ended = chat.ask('Draw')
    await begun.promise
    await abandon(mill, chat, [await lastCall(chat)], -1_000)
    expect((await ended)?.role).to.equal('assistant')
    const other = await (await bench.connect(options)).chats.find(chat.id)
    expect((await other.complete())?.content).to.equal('Drawn.')
    expect(await names(chat)).to.deep.equal([['run-2.txt']])
    expect(await kept()).to.have.length(2)
    expect(await mill.purgeAttachments({ unusedForMs: 0 })).to.equal(1)
    expect(await kept()).to.have.length(1)
  })
})
