import type { Transaction } from 'sequelize'
import type { AttachmentConverter } from '../attachments/convert.ts'
import { ArgumentError } from '../errors.ts'
import { errorFacts } from '../observability/error-facts.ts'
import type { HookLists, HookName, Hooks } from '../tools/hooks.ts'
import type { Chat } from './chat.ts'
import { ChatHandle } from './chat-handle.ts'

/**
 * Hooks of this very object: called in this process, for what it runs and queues itself, after those of the agent. What workers
 * are to call belongs to `defineAgent({ hooks })`. Each method adds to what is there, and `reload` keeps it. (E30, S104)
 */
export abstract class ChatHooks extends ChatHandle {
  protected readonly converters: AttachmentConverter[] = []
  readonly #hooks: { [Name in HookName]?: Hooks<Chat>[Name][] } = {}

  /** Called with each request's body before it is sent, to change it in place; also by {@link render}. */
  beforeRequest(hook: Hooks<Chat>['beforeRequest']): this {
    return this.#add('beforeRequest', hook)
  }

  /** Called before each assistant or tool message begins. */
  beforeMessage(hook: Hooks<Chat>['beforeMessage']): this {
    return this.#add('beforeMessage', hook)
  }

  /** Called with each assistant or tool message once it is stored. */
  afterMessage(hook: Hooks<Chat>['afterMessage']): this {
    return this.#add('afterMessage', hook)
  }

  /** Called right before a tool runs. */
  beforeToolCall(hook: Hooks<Chat>['beforeToolCall']): this {
    return this.#add('beforeToolCall', hook)
  }

  /** Called with what a tool returned, before it is stored. */
  afterToolResult(hook: Hooks<Chat>['afterToolResult']): this {
    return this.#add('afterToolResult', hook)
  }

  /** Called whenever a running tool reports how far it is. */
  afterToolProgress(hook: Hooks<Chat>['afterToolProgress']): this {
    return this.#add('afterToolProgress', hook)
  }

  /** Called before another model is asked in place of one that failed. (S87) */
  beforeFallback(hook: Hooks<Chat>['beforeFallback']): this {
    return this.#add('beforeFallback', hook)
  }

  /** Called when that other model has answered or failed. (S87) */
  afterFallback(hook: Hooks<Chat>['afterFallback']): this {
    return this.#add('afterFallback', hook)
  }

  /** Called with each message that this object queued. (S58) */
  afterQueue(hook: Hooks<Chat>['afterQueue']): this {
    return this.#add('afterQueue', hook)
  }

  /** Called with each queued message that this object stored as a message, running or asking. (S55, S58) */
  afterDequeue(hook: Hooks<Chat>['afterDequeue']): this {
    return this.#add('afterDequeue', hook)
  }

  /** Called with each message that this object took out of the queue. */
  afterUnqueue(hook: Hooks<Chat>['afterUnqueue']): this {
    return this.#add('afterUnqueue', hook)
  }

  /**
   * Makes something of files that a model can't take, in this object's own runs, after the converters of the agent: a text, another
   * file, or null for 'not by this'. The transcript keeps the file.
   */
  convertUnsupportedAttachments(converter: AttachmentConverter): this {
    if (typeof converter !== 'function') {
      throw new ArgumentError(`convertUnsupportedAttachments of chat ${this.id} takes a function.`, { chatId: this.id })
    }
    this.converters.push(converter)
    return this
  }

  /** @internal */
  get ownHooks(): HookLists<never> {
    return this.#hooks as HookLists<never>
  }

  /** What is called for what happens to the queue: the agent's hooks, where this process has it, and this object's. */
  protected async callHooks<Name extends 'afterQueue' | 'afterDequeue' | 'afterUnqueue'>(
    name: Name,
    ...given: Parameters<Hooks<this>[Name]>
  ): Promise<void> {
    for (const hook of this.#queueHooks(name)) await (hook as (...args: unknown[]) => unknown)(...given)
  }

  /**
   * Calls hooks for what was done. What they throw comes out, unless that was part of a transaction: that one is committed, and whoever began
   * it would take it for failed. (E179)
   */
  protected async told(transaction: Transaction | undefined, hook: HookName, call: () => Promise<void>): Promise<void> {
    if (transaction === undefined) return call()
    const { id, agent } = this
    await call().catch((error: unknown) => {
      this.deps.ports.observe({ type: 'hook.trouble', hook, chatId: id, agent, error: errorFacts(error) })
    })
  }

  protected hasHooks(name: HookName): boolean {
    return this.#queueHooks(name).length > 0
  }

  #queueHooks(name: HookName): readonly unknown[] {
    return [...(this.deps.agentOf(this.row)?.hooks[name] ?? []), ...(this.#hooks[name] ?? [])]
  }

  #add<Name extends HookName>(name: Name, hook: Hooks<Chat>[Name]): this {
    if (typeof hook !== 'function') {
      throw new ArgumentError(`${name} of chat ${this.id} takes a function, not ${String(hook)}.`, { chatId: this.id })
    }
    const hooks: Hooks<Chat>[Name][] = this.#hooks[name] ?? []
    hooks.push(hook)
    Object.assign(this.#hooks, { [name]: hooks })
    return this
  }
}
