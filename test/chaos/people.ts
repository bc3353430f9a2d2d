import { setTimeout as wait } from 'node:timers/promises'
import { type Chat, StateError, type Threadmill } from '../../src/index.ts'
import type { ToolName } from './agents.ts'
import type { Book, Heard, Said } from './book.ts'
import { questionOf, type Rounds } from './model.ts'
import type { Sight } from './watch.ts'

export interface PeopleOptions {
  readonly mill: Threadmill
  readonly book: Book
  /** Chats that are talked to at the same time. */
  readonly chats: number
  /** The latest sight of a chat; undefined while there is none. */
  readonly sightOf: (chatId: string) => Sight | undefined
  readonly random: () => number
}

const tickMs = 200
const turnsOfAChat = 6
/** A question that is not heard of any more is given up after so many ms; whether that is right is looked at in the end. */
const patienceMs = 25_000

type Steer = boolean | null

/** People who write to chats, decide, queue, take back and cancel, all from this process, which runs no chat. */
export class People {
  readonly #options: PeopleOptions
  readonly #handles = new Map<string, Chat>()
  #isOver = false
  #count = 0
  #talks: Promise<void>[] = []

  constructor(options: PeopleOptions) {
    this.#options = options
  }

  start(): void {
    this.#talks = Array.from({ length: this.#options.chats }, () => this.#talk())
  }

  /** Has them say nothing new, and resolves when they have fallen silent. */
  async stop(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#talks)
  }

  /** Writes to a chat at once: somebody is about to end its run. */
  async interfere(chatId: string): Promise<void> {
    const chat = this.#handles.get(chatId)
    if (chat === undefined || this.#isOver) return
    const { random } = this.#options
    const pending = this.#options.sightOf(chatId)?.pending[0]
    if (pending !== undefined && random() < 0.5) return this.decide(chatId, pending)
    if (random() < 0.15) return this.#cancel(chat)
    await this.#queue(chat, random() < 0.7)
  }

  /** Decides about a call: mostly it may run. */
  async decide(chatId: string, callId: string, always = false): Promise<void> {
    const chat = this.#handles.get(chatId)
    if (chat === undefined) return
    const { random, book } = this.#options
    const approved = always || random() < 0.85
    const remember = approved && !always && random() < 0.05
    const heard = await this.#hear(() => (approved ? chat.approve(callId, { remember }) : chat.deny(callId)))
    book.decisions.push({ chatId, callId, approved, at: Date.now(), heard })
  }

  /** Wants a chat run, once more. */
  async want(chatId: string): Promise<Heard> {
    return this.#hear(() => this.#options.mill.jobs.complete.enqueue(chatId))
  }

  async #talk(): Promise<void> {
    while (!this.#isOver) {
      const chat = await this.#create()
      for (let turn = 0; turn < turnsOfAChat && chat !== null && !this.#isOver; turn++) {
        await this.#ask(chat)
        await this.#follow(chat)
      }
      if (chat === null) await wait(tickMs)
    }
  }

  async #create(): Promise<Chat | null> {
    const { mill, book, random } = this.#options
    try {
      const chat = await mill.chats.create({ agent: random() < 0.75 ? 'inline' : 'queued' })
      this.#handles.set(chat.id, chat)
      book.chatIds.push(chat.id)
      return chat
    } catch {
      return null
    }
  }

  /** Asks something, by one of the ways that there are. */
  async #ask(chat: Chat): Promise<void> {
    const { random } = this.#options
    const way = random()
    if (way < 0.35) await this.#say(chat, null, (text) => chat.askLater(text, { enqueue: true }))
    else if (way < 0.6) {
      await this.#say(chat, null, (text) => chat.post(text, { whileRunning: random() < 0.5 ? 'queue' : 'steer' }))
    } else if (way < 0.8) await this.#queue(chat, random() < 0.5)
    else {
      await this.#say(chat, null, (text) => chat.askLater(text))
      // Also when all is over: nobody else would want it.
      while ((await this.want(chat.id)) !== 'accepted') await wait(tickMs)
    }
  }

  /** Watches a chat until it is at rest, and meddles. */
  async #follow(chat: Chat): Promise<void> {
    const { sightOf, random } = this.#options
    const begun = performance.now()
    let seen = Date.now()
    let quiet = 0
    while (!this.#isOver && performance.now() - begun < patienceMs) {
      await wait(tickMs * (0.75 + random() / 2))
      const sight = sightOf(chat.id)
      if (sight === undefined || sight.at <= seen) continue
      seen = sight.at
      const isQuiet = sight.claimedBy === null && sight.wanted === 'no' && sight.pending.length === 0
      quiet = isQuiet ? quiet + 1 : 0
      if (quiet > 1) return
      if (!isQuiet) await this.#meddle(chat, sight)
    }
  }

  async #meddle(chat: Chat, { pending, wanted }: Sight): Promise<void> {
    const { random } = this.#options
    const [callId] = pending
    if (callId !== undefined && random() < 0.5) return this.decide(chat.id, callId)
    if (wanted === 'later' && random() < 0.2) return void (await this.want(chat.id))
    const act = random()
    if (act < 0.014) await this.#queue(chat, true)
    else if (act < 0.024) await this.#queue(chat, false)
    else if (act < 0.045) await this.#cancel(chat)
    else if (act < 0.055) {
      await this.#say(chat, null, (text) => chat.post(text, { whileRunning: random() < 0.5 ? 'interrupt' : 'steer' }))
    }
  }

  async #cancel(chat: Chat): Promise<void> {
    const heard = await this.#hear(() => chat.cancel())
    this.#options.book.cancels.push({ chatId: chat.id, heard })
  }

  async #queue(chat: Chat, steer: boolean): Promise<void> {
    const { random } = this.#options
    let id: string | undefined
    const said = await this.#say(chat, steer, async (text) => {
      id = (await chat.queue(text, { steer })).id
    })
    if (id === undefined || random() > 0.1) return
    const queued = id
    let removed = false
    const heard = await this.#hear(async () => {
      removed = await chat.unqueue(queued)
    })
    said.unqueued = heard === 'accepted' ? (removed ? 'yes' : 'no') : 'perhaps'
  }

  async #say(chat: Chat, steer: Steer, verb: (text: string) => Promise<unknown>): Promise<Said> {
    const { book, random } = this.#options
    const begun = ++this.#count
    const text = questionOf(`m${begun}`, draw(random))
    const heard = await this.#hear(() => verb(text))
    const said: Said = { chatId: chat.id, text, steer, begun, ended: ++this.#count, heard, unqueued: 'no' }
    book.said.push(said)
    return said
  }

  async #hear(verb: () => Promise<unknown>): Promise<Heard> {
    try {
      await verb()
      return 'accepted'
    } catch (error) {
      // Errors of ours about the state of a chat say that nothing was written; any other may have come after the commit.
      return error instanceof StateError ? 'refused' : 'unknown'
    }
  }
}

/** What the model is to do about a question. */
function draw(random: () => number): Rounds {
  const way = random()
  if (way < 0.3) return []
  const call = (): ToolName => {
    const kind = random()
    if (kind < 0.35) return 'quick'
    if (kind < 0.55) return 'slow'
    if (kind < 0.75) return 'gated'
    return kind < 0.88 ? 'once' : 'unsure'
  }
  const round = () => Array.from({ length: random() < 0.3 ? 2 : 1 }, call)
  return way < 0.8 ? [round()] : [round(), round()]
}
