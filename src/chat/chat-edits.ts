import { type Cut, type CutOutcome, cutTranscript } from '../../models/cutting.ts'
import { purgeFiles } from '../attachments/keeping.ts'
import { ArgumentError, CancelledError, ChatRunningError } from '../errors.ts'
import { ChatPosts } from './chat-posts.ts'
import { requireText } from './chat-requests.ts'
import { removeChat } from './remove-chat.ts'
import { requireOptions } from './verb-options.ts'

/** How a question is asked again. */
export interface EditOptions {
  /** Also ask for the chat to be run by a worker, as `jobs.complete.enqueue` does. */
  readonly enqueue?: boolean | undefined
  /** How long to wait for a process that runs the chat to stop, in ms. Default 60 000, in which a dead one has lost its claim. */
  readonly waitMs?: number | undefined
}

/** Which question is asked again. */
export interface RegenerateOptions extends EditOptions {
  /** The id of a question, or of a message behind it: an answer, say. Default: the last question. */
  readonly at?: string | undefined
}

const LOOK_MS = 100
const WAIT_MS = 60_000

/** What takes parts of a chat away, or all of it. */
export abstract class ChatEdits extends ChatPosts {
  /** Runs the loop. */
  abstract complete(): Promise<unknown>

  /**
   * Gives a user message another text and removes every message behind it, with its calls and what was decided about them; usage
   * entries stay. What runs or waits is cancelled first, as by {@link cancel}, and has ended when the messages go: no tool of the
   * removed part begins afterwards. The message keeps its id and place, and is asked by the next `complete`, or with `enqueue` by
   * a worker. Queued messages stay. To keep the old course, fork the chat first. (E55, E56)
   * @throws {ArgumentError} when the chat has no such user message, or the text is none; nothing is changed.
   * @throws {ChatRunningError} when the process that runs the chat has not stopped in `waitMs`: the turn is cancelled, and this can be
   *   tried again.
   */
  async edit(messageId: string, text: string, options: EditOptions = {}): Promise<this> {
    requireOptions('edit', options, this.id)
    requireText(text, this.id)
    return this.#askAgain({ messageId: String(messageId), text }, options)
  }

  /**
   * Removes every message behind a user message, as {@link edit} does, so that it is asked again as it is. (E55)
   * @throws {ArgumentError} when there is no such message, or no question to ask again; nothing is changed.
   * @throws {ChatRunningError} as of {@link edit}.
   */
  async regenerate(options: RegenerateOptions = {}): Promise<this> {
    requireOptions('regenerate', options, this.id)
    const { at } = options
    return this.#askAgain({ messageId: at === undefined ? null : String(at), text: null }, options)
  }

  /**
   * Removes the chat and all of its rows, whoever runs it: that run ends with {@link ChatNotFoundError} and brings nothing back.
   * Readers of its events come to their end. (E53, S31)
   * @throws {ChatNotFoundError} when it is gone already.
   */
  async delete(): Promise<void> {
    await removeChat(this.deps, this.id)
  }

  async #askAgain(
    asked: { readonly messageId: string | null; readonly text: string | null },
    { enqueue = false, waitMs = WAIT_MS }: EditOptions,
  ): Promise<this> {
    if (typeof waitMs !== 'number' || !(waitMs >= 0)) {
      throw new ArgumentError(`waitMs of chat ${this.id} is a number of ms, 0 or more.`, { chatId: this.id })
    }
    const { db, ports, publish } = this.deps
    const giveUpAt = performance.now() + waitMs
    let { messageId } = asked
    let arrivedFrom: number | null = null
    for (;;) {
      const cut: Cut = { chatId: this.id, messageId, text: asked.text, want: enqueue, arrivedFrom }
      const outcome: CutOutcome = await db.transaction((transaction) => cutTranscript(db, cut, transaction))
      if (outcome.kind === 'cut') {
        const { content, removed, files, wanted } = outcome
        await purgeFiles(this.deps, files)
        publish(this.id, { type: 'transcript.cut', messageId: outcome.messageId, content, removed })
        if (wanted) await ports.bell.ring(this.id, 'complete')
        return this
      }
      // Asked again, the question is the one that it was; what came behind it meanwhile is not taken for it.
      messageId = outcome.messageId
      arrivedFrom = outcome.arrivedFrom
      await this.#carryOutCancel(outcome.claimed, giveUpAt)
    }
  }

  /** Has the cancel of a turn that nobody runs carried out here or, where the agent is elsewhere, by a worker; waits for whoever runs. */
  async #carryOutCancel(claimed: boolean, giveUpAt: number): Promise<void> {
    const { ports } = this.deps
    const isOurs = this.agent === null || ports.agentNamed(this.agent) !== null
    if (!claimed && isOurs) {
      const settled = await this.complete().then(
        () => false,
        (error: unknown) => {
          if (!(error instanceof CancelledError)) throw error
          return true
        },
      )
      // Else somebody else has the chat by now, or it is not to be had yet.
      if (settled) return
    }
    if (performance.now() >= giveUpAt) {
      throw new ChatRunningError(
        `Chat ${this.id} has not come to rest: its turn is cancelled, but the process that runs it, or a worker that has ` +
          `its agent, has yet to say so. Nothing was removed; try again.`,
        { chatId: this.id },
      )
    }
    if (!claimed) await ports.bell.ring(this.id, 'complete')
    await ports.clock.wait(LOOK_MS, new AbortController().signal)
  }
}
