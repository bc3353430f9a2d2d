import { userMessage } from '../../models/new-message.ts'
import type { QueuedMessageRow } from '../../models/rows.ts'
import type { Staged, Staging } from '../../models/staging.ts'
import { openRequests } from '../../models/waiting.ts'
import { openCalls } from '../../src/loop/transcript.ts'
import { ringJob } from '../../workers/bell.ts'
import type { Act, When } from './plan.ts'
import type { World } from './world.ts'

/** A user message that was accepted, whether its sender heard so or not. */
export interface Said {
  readonly chatId: string
  readonly content: string
  /** How it waited; null = it went into the transcript at once. */
  readonly steer: boolean | null
}

interface Draft extends Staging {
  readonly message: { readonly id: string; readonly content: string; readonly attachments: null }
}

/** The applications beside the workers: they write without a claim, from any process. */
export class Application {
  /** Statements that are on their way, and acts that are to come. */
  pending = 0
  /** In the order in which they were accepted, those that were taken back left out. */
  readonly said: Said[] = []
  /** Chats that somebody left as they were on purpose: staged and not wanted, or moved by hand. */
  readonly left = new Set<string>()
  /** Chats that were looked at for usage that was left open. */
  readonly takenOnceMore = new Set<string>()
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  start(): void {
    for (const act of this.#world.plan.acts) {
      this.pending++
      this.#world.scheduler.after(act.at, () => {
        this.pending--
        this.#world.trace('app', JSON.stringify(act))
        void this.#perform(this.#world.chatIds[act.chat % this.#world.plan.chats] ?? '', act)
      })
    }
  }

  async #perform(chatId: string, act: Act): Promise<void> {
    const { statements, processes, plan } = this.#world
    switch (act.kind) {
      case 'ask':
        return this.#rings(chatId, this.#stage(this.#draft(chatId, true), act.lost))
      case 'ask-later': {
        if (act.dies) this.left.add(chatId)
        await this.#stage(this.#draft(chatId, false), act.lost)
        return act.dies ? undefined : this.want(chatId)
      }
      case 'post': {
        const draft = { ...this.#draft(chatId, true), whileRunning: act.how, owner: null }
        return this.#rings(
          chatId,
          this.#send(act.lost, () => this.#accept(draft, statements.post(draft))),
        )
      }
      case 'queue': {
        const content = this.#world.newId('said')
        const message = { chatId, id: content, content, attachments: null, owner: null, wake: true, steer: act.steer }
        return this.#rings(
          chatId,
          this.#send(act.lost, () => statements.queue(message).then(() => this.said.push({ ...message }))),
        )
      }
      case 'unqueue':
        return void (await this.#send(act.lost, () => this.#unqueue(chatId, act.pick)))
      case 'decide':
        return this.decide(chatId, act)
      case 'answer':
        return this.answer(chatId, act)
      case 'cancel':
        return this.#cancel(chatId, act.lost)
      case 'want':
        return this.want(chatId, act.lost)
      case 'run': {
        // Whoever moves a chat by hand decides about its next move too.
        if (act.verb === 'step') this.left.add(chatId)
        const process = processes[act.process % plan.processes]
        if (process?.isDead === false) await process.drive({ chatId, verb: act.verb, by: 'caller' })
        return
      }
      default:
        return act satisfies never
    }
  }

  /** Decides one of the open calls; a tool that no process has can't be allowed to run. */
  async decide(
    chatId: string,
    { pick, approval, lost }: { pick: number; approval: 'approved' | 'remembered' | 'denied'; lost: When | null },
  ): Promise<void> {
    const open = openCalls(this.#world.tables.transcript(chatId, null))
    const call = open[pick % Math.max(1, open.length)]
    if (call === undefined || (call.name === 'unknown' && approval !== 'denied')) return
    const nobody = { by: null, reason: null, wake: true, ifUndecided: false, arguments: null, argumentsHash: null }
    const decision = { chatId, call: call.id, approval, ...nobody }
    await this.#rings(
      chatId,
      this.#send(lost, () => this.#world.statements.decide(decision)),
    )
  }

  /** Answers the question of one of the open calls. */
  async answer(
    chatId: string,
    { pick, declines, lost }: { pick: number; declines: boolean; lost: When | null },
  ): Promise<void> {
    const asking = openCalls(this.#world.tables.transcript(chatId, null)).filter(
      (call) => openRequests(call).length > 0,
    )
    const call = asking[pick % Math.max(1, asking.length)]
    const key = call === undefined ? undefined : openRequests(call)[0]?.key
    if (call === undefined || key === undefined) return
    const said = { chatId, call: call.id, key, by: null, reason: null, wake: true }
    const answer = declines ? null : () => ({ n: 1 })
    await this.#rings(
      chatId,
      this.#send(lost, () => this.#world.statements.answer({ ...said, answer })),
    )
  }

  /** Stops what runs for a chat, and what runs for that below it. */
  async #cancel(chatId: string, lost: When | null): Promise<void> {
    let stopped: readonly string[] = []
    const cancel = async () => {
      stopped = await this.#world.statements.cancel(chatId, null)
      for (const id of stopped) this.#world.monitor.deadlines.cancelled(id)
    }
    const sent = this.#send(lost, cancel)
    await this.#rings(chatId, sent)
    for (const id of stopped) if (id !== chatId) await this.#rings(id, sent)
  }

  want(chatId: string, lost: When | null = null): Promise<void> {
    const want = () => {
      this.#world.monitor.triedAgain(chatId)
      return this.#world.statements.want(chatId, { delayMs: 0, queue: 'complete' })
    }
    return this.#rings(chatId, this.#send(lost, want))
  }

  /** Sends a statement. False = its sender does not hear that it was done. */
  #send(lost: When | null, statement: () => Promise<unknown>): Promise<boolean> {
    this.pending++
    return new Promise((resolve) => {
      const { scheduler } = this.#world
      scheduler.after(this.#world.random() * 50, () => {
        const came = lost === 'before' ? Promise.resolve(null) : statement()
        this.#world.traceEnd('app', lost === null ? 'done' : `lost ${lost} it was done`, came)
        const ended = (heard: boolean) =>
          scheduler.after(this.#world.random() * 50, () => {
            this.pending--
            resolve(heard)
          })
        came.then(
          () => ended(lost === null),
          () => ended(false),
        )
      })
    })
  }

  /** Rings once a statement was heard to be done. */
  async #rings(chatId: string, sent: Promise<boolean>): Promise<void> {
    if (await sent) this.#world.redis.ring(chatId, 'complete', ringJob(chatId))
  }

  #stage(draft: Draft, lost: When | null): Promise<boolean> {
    return this.#send(lost, () => this.#accept(draft, this.#world.statements.stage(draft)))
  }

  #draft(chatId: string, want: boolean): Draft {
    const content = this.#world.newId('said')
    const toMessage = (queued: QueuedMessageRow) => userMessage(chatId, `of-${queued.id}`, queued)
    return { chatId, message: { id: content, content, attachments: null }, want, pending: {}, toMessage }
  }

  /** Keeps that a message was accepted, and how. */
  async #accept({ chatId, message }: Draft, staging: Promise<Staged>): Promise<void> {
    const staged = await staging
    const steer = staged.kind === 'queued' ? staged.queued.steer : null
    this.said.push({ chatId, content: message.content, steer })
  }

  async #unqueue(chatId: string, pick: number): Promise<void> {
    const queue = this.#world.tables.queue(chatId)
    const row = queue[pick % Math.max(1, queue.length)]
    if (row === undefined || !(await this.#world.statements.unqueue(chatId, row.id)).removed) return
    this.said.splice(
      this.said.findIndex(({ content }) => content === row.content),
      1,
    )
  }
}
