import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type Chat, Threadmill } from 'threadmill'
import { benchAgent } from './agent.ts'
import { type Arena, type Contestant, ownCpuMs } from './contestant.ts'
import type { Order, Word } from './worker.ts'
import { historyOf, type Workload } from './workloads.ts'

/** Answers that turns wait for. A chat has one turn at a time. */
class Answers {
  readonly #waiting = new Map<string, () => void>()

  of(chatId: string): Promise<void> {
    return new Promise((resolve) => this.#waiting.set(chatId, resolve))
  }

  readonly arrive = (chatId: string): void => {
    this.#waiting.get(chatId)?.()
    this.#waiting.delete(chatId)
  }
}

/** Everything in this process: what the application does and what the workers do. */
export const sameProcess: Contestant = {
  name: 'threadmill, one process',
  async prepare(workload, arena) {
    const answers = new Answers()
    const mill = await connect(workload, arena, answers)
    const chats = await chatsFor(mill, workload)
    await mill.startWorkers({ complete: workload.concurrency, runTools: 0 }).ready()
    return { turn: turnOf(mill, chats, answers), cpuMs: async () => ownCpuMs(), close: () => mill.close() }
  },
}

/** The workers in a process of their own, whose CPU time is measured; the application stays in this one. */
export const otherProcess: Contestant = {
  name: 'threadmill, worker process',
  async prepare(workload, arena) {
    const answers = new Answers()
    const mill = await connect(workload, arena, answers)
    const chats = await chatsFor(mill, workload)
    const worker = fork(fileURLToPath(new URL('./worker.ts', import.meta.url)), { execArgv: workerArguments() })
    const order = (message: Order) => worker.send(message)
    worker.on('message', (word: Word) => {
      if (word.kind === 'answered') answers.arrive(word.chatId)
    })
    order({ kind: 'start', arena, streaming: workload.chunks > 0, jobs: workload.concurrency })
    await word(worker, 'ready')
    return {
      turn: turnOf(mill, chats, answers),
      async cpuMs() {
        order({ kind: 'cpu' })
        return (await word(worker, 'cpu')).ms
      },
      async close() {
        const ended = once(worker, 'exit')
        worker.disconnect()
        await Promise.all([ended, mill.close()])
      },
    }
  },
}

/** A profile of the worker is written where BENCH_PROFILE names a folder. */
function workerArguments(): string[] {
  const folder = process.env.BENCH_PROFILE
  return [...process.execArgv, ...(folder === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${folder}`])]
}

function word<Kind extends Word['kind']>(worker: ChildProcess, kind: Kind): Promise<Extract<Word, { kind: Kind }>> {
  return new Promise((resolve, reject) => {
    const settle = (end: () => void) => {
      worker.off('message', hear)
      worker.off('exit', gone)
      end()
    }
    const hear = (heard: Word) => {
      if (heard.kind === kind) settle(() => resolve(heard as Extract<Word, { kind: Kind }>))
    }
    const gone = (code: number | null) => settle(() => reject(new RangeError(`The worker ended with ${code}`)))
    worker.on('message', hear)
    worker.on('exit', gone)
  })
}

function connect(
  workload: Workload,
  { databaseUrl, redisUrl, modelUrl }: Arena,
  answers: Answers,
): Promise<Threadmill> {
  return Threadmill.connect({
    databaseUrl,
    redisUrl,
    openaiBaseUrl: modelUrl,
    migrate: true,
    agents: [benchAgent(workload.chunks > 0, answers.arrive)],
  })
}

/** One chat a turn; where chats have a history, a few, used in turn. */
async function chatsFor(mill: Threadmill, workload: Workload): Promise<Chat[]> {
  const count = workload.history > 0 ? workload.concurrency * 4 : workload.turns + workload.warmup
  const chats: Chat[] = []
  for (let made = 0; made < count; made++) {
    const chat = await mill.chats.create({ agent: 'bench' })
    chats.push(chat)
    if (workload.history > 0) await seed(mill, chat.id, workload)
  }
  return chats
}

async function seed(mill: Threadmill, chatId: string, workload: Workload): Promise<void> {
  const rows = historyOf(workload).map((message, position) => ({
    ...message,
    id: `${chatId.slice(0, 24)}${String(position).padStart(12, '0')}`,
    chatId,
    position,
  }))
  await mill.models.Message.bulkCreate(rows)
  await mill.models.Chat.update({ nextPosition: rows.length, turn: rows.length / 2 }, { where: { id: chatId } })
}

function turnOf(mill: Threadmill, chats: readonly Chat[], answers: Answers): (at: number) => Promise<void> {
  return async (at) => {
    const chat = chats[at % chats.length]
    if (chat === undefined) throw new RangeError('There is no chat left')
    const answered = answers.of(chat.id)
    await chat.askLater(`Look up k${at}`)
    await mill.jobs.complete.enqueue(chat.id)
    await answered
  }
}
