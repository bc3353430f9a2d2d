import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect } from 'chai'
import { type Chat, type ConnectOptions, defineAgent, Threadmill } from '../../src/index.ts'
import { sqlite } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'
import { comparable, compareChat } from './comparisons.ts'
import { planOf, type Step } from './plan.ts'
import {
  agentName,
  bytesOf,
  type Conversation,
  contentText,
  hasAddresses,
  otherParts,
  type RecordedMessage,
  readConversation,
  recordedFiles,
  recordingsFolder,
} from './recordings.ts'
import { ReplayServer } from './replay-server.ts'

const files = recordedFiles()

if (files.length === 0) {
  describe('Real input', () => {
    it(`is left out: there are no recordings in ${recordingsFolder} (set THREADMILL_WIRE to their folder)`)
  })
} else {
  describe('Real input', () => {
    const bench = useBench(sqlite, { claimTtlMs: 45_000 })
    const server = new ReplayServer()
    let worker: ChildProcess | undefined
    let mill: Threadmill
    let right = 0
    let total = 0

    before(async function () {
      this.timeout(120_000)
      await server.start()
      worker = await startWorker(bench.options(), server.url)
      // The process that asks only names the agents; it never runs them.
      const names = files.flatMap((file) => [agentName(file, true), agentName(file, false)])
      mill = await Threadmill.connect({ ...bench.options(), agents: names.map((name) => defineAgent({ name })) })
    })
    after(async function () {
      this.timeout(60_000)
      await mill?.close()
      if (worker !== undefined) await end(worker)
      await server.stop()
      process.stdout.write(`    ${right} of ${total} recorded conversations came out as recorded\n`)
    })

    for (const file of files) {
      if (hasAddresses(readConversation(file))) {
        it(`input not yet: ${file.replace('.json', '')} has the provider fetch a picture or a file`)
        continue
      }
      total += 1
      it(`takes ${file.replace('.json', '')} from its first message to its last row`, async function () {
        this.timeout(120_000)
        await replay(readConversation(file, { whole: true }))
        right += 1
      })
    }

    async function replay(conversation: Conversation): Promise<void> {
      const requests = server.load(conversation)
      let chat: Chat | null = null
      let made: number[] = []
      for (const step of planOf(conversation)) {
        if (chat === null || step.act === 'start') {
          chat = await mill.chats.create({ agent: agentName(conversation.file, step.streaming) })
          made = []
        }
        await prepare(chat, conversation, step)
        await mill.jobs.complete.enqueue(chat)
        await untilAtRest(chat.id)
        expect(requests, 'requests sent').to.have.length(step.to + 1)
        for (let index = step.from; index <= step.to; index++) made.push(index)
        await compareChat(mill, chat, conversation, made)
      }
      for (const [index, { request }] of conversation.exchanges.entries()) {
        const sent = requests[index]
        expect(sent?.stream === true, `request ${index}: streaming`).to.equal(request.body.stream === true)
        expect(comparable(sent?.messages ?? []), `request ${index}: messages`).to.deep.equal(
          comparable(request.body.messages),
        )
      }
    }

    /** What the application did by hand before this run. */
    async function prepare(chat: Chat, conversation: Conversation, step: Step): Promise<void> {
      if (step.instructions !== undefined) chat.withInstructions(step.instructions)
      for (const message of step.messages) await add(chat, message)
      if (step.act !== 'ask') return
      // An agent says whether it streams, and some conversations change that on the way.
      const agent = agentName(conversation.file, step.streaming)
      await mill.models.Chat.update({ agent }, { where: { id: chat.id } })
    }

    async function untilAtRest(chatId: string): Promise<void> {
      const attributes = ['claimedBy', 'wantedAt']
      await until(
        'the worker is done with the chat',
        async () => {
          const row = await mill.models.Chat.findByPk(chatId, { attributes })
          return row !== null && row.claimedBy === null && row.wantedAt === null
        },
        100_000,
      )
    }
  })
}

async function add(chat: Chat, message: RecordedMessage): Promise<void> {
  const content = contentText(message.content)
  if (message.role === 'user') {
    await chat.askLater(content, { attachments: otherParts(message.content).map(bytesOf) })
  }
  if (message.role === 'tool') {
    await chat.addMessage({ role: 'tool', content, toolCallId: message.tool_call_id ?? '' })
  }
  if (message.role === 'assistant') {
    const toolCalls = (message.tool_calls ?? []).map((call) => ({
      id: call.id,
      name: call.function.name,
      arguments: JSON.parse(call.function.arguments || '{}') as Record<string, unknown>,
    }))
    await chat.addMessage({ role: 'assistant', content, toolCalls })
  }
}

/** A worker process that has every recorded agent; it ends with this process. */
async function startWorker(options: ConnectOptions, replayUrl: string): Promise<ChildProcess> {
  const path = (file: string) => fileURLToPath(new URL(file, import.meta.url))
  const loader = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href
  const child = spawn(
    process.execPath,
    ['--import', loader, path('../support/worker-entry.ts'), path('./conversation-app.ts')],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, THREADMILL_TEST_OPTIONS: JSON.stringify(options), REPLAY_URL: replayUrl },
    },
  )
  const gone = once(child, 'exit').then(([code]) => Promise.reject(new Error(`The worker ended with ${code}`)))
  const ready = new Promise<void>((resolve) => {
    child.stdout.on('data', (data: Buffer) => {
      if (data.toString().includes('READY')) resolve()
    })
  })
  await Promise.race([ready, gone])
  gone.catch(() => {})
  return child
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}
