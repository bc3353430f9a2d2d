import type { ModelRecord } from '../../models/model.ts'
import { ArgumentError } from '../errors.ts'
import { ChatHooks } from './chat-hooks.ts'
import { requireOptions } from './verb-options.ts'

/** A model as a value: what a row of `mill.models.Model` is too. */
export interface ModelChoice {
  /** What the provider calls it. */
  readonly modelId: string
  /** Who serves it. */
  readonly provider: string
}

/** How a model is chosen. */
export interface ModelOptions {
  /** Who serves it. Default: the agent's provider. */
  readonly provider?: string | undefined
  /** The wire protocol in place of the provider's own. There is one: `chat_completions`. Default: the provider's own. */
  readonly protocol?: Protocol | null | undefined
  /**
   * Sets `chat.assumeModelExists`.
   */
  readonly assumeModelExists?: boolean | undefined
}

/** The wire protocols that there are. */
export type Protocol = 'chat_completions'

/** Which model a chat asks, and by what. */
export abstract class ChatModel extends ChatHooks {
  #protocol: Protocol | null = null

  /**
   * Asks this model from now on; null = as the agent says, else the configured default. Stored by the next verb, with a row of
   * `mill.models.Model` of its own. A bare call also resets the protocol.
   * @throws {ArgumentError} for what names no model; the verb that stores it throws {@link UnknownModelError} where the model has to be known.
   */
  withModel(model: string | ModelChoice | null, options: ModelOptions = {}): this {
    requireOptions('withModel', options, this.id)
    const protocol = options.protocol ?? null
    requireProtocol(protocol, this.id)
    if (typeof model === 'object' && model !== null)
      this.pending.setModel(model.modelId, options.provider ?? model.provider)
    else this.pending.setModel(model, options.provider)
    this.#protocol = protocol
    if (options.assumeModelExists !== undefined) this.assumeModelExists = options.assumeModelExists
    return this
  }

  /** The id of the model that was set and is not stored yet, else of the chat's own; null = as the agent says. */
  get modelId(): string | null {
    const { model } = this.pending.assigned
    return model === undefined ? this.row.model : model
  }

  /** Sets the id of the model, to be stored by the next verb; null = as the agent says. @throws {ArgumentError} */
  set modelId(id: string | null) {
    this.pending.setModel(id, this.pending.assigned.provider)
  }

  /** The same as {@link modelId}; takes an id, a value, or a row of `mill.models.Model`. */
  get model(): string | null {
    return this.modelId
  }

  /** Sets the model as {@link withModel} does. @throws {ArgumentError} */
  set model(model: string | ModelChoice | null) {
    this.withModel(model)
  }

  /**
   * The provider that was set and is not stored yet, else the chat's own; null = as the agent says, and while a model was set
   * without one.
   */
  get provider(): string | null {
    const { provider } = this.pending.assigned
    return provider === undefined ? this.row.provider : provider
  }

  /** Sets the provider, to be stored by the next verb; null = as the agent says. @throws {ArgumentError} */
  set provider(provider: string | null) {
    this.pending.setProvider(provider)
  }

  /** The wire protocol that was set for this object; null = the provider's own. Never stored. */
  get protocol(): Protocol | null {
    return this.#protocol
  }

  /** Sets the wire protocol for this object. @throws {ArgumentError} for one that there is not. */
  set protocol(protocol: Protocol | null) {
    requireProtocol(protocol, this.id)
    this.#protocol = protocol
  }

  /** The row of the model that the chat itself names; null where it names none. */
  async modelRow(): Promise<ModelRecord | null> {
    const { modelRowId } = (await this.look()).chat
    return modelRowId === null ? null : this.deps.models.Model.findByPk(modelRowId, { useMaster: true })
  }
}

function requireProtocol(protocol: unknown, chatId: string): asserts protocol is Protocol | null {
  if (protocol === null || protocol === 'chat_completions') return
  throw new ArgumentError(`Chat ${chatId} can speak chat_completions, not ${JSON.stringify(protocol)?.slice(0, 60)}.`, {
    chatId,
  })
}
