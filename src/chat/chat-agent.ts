import type { JsonObject } from '../../models/rows.ts'
import { ChatModel } from './chat-model.ts'

/** What a chat's agent is given for it. */
export abstract class ChatAgent extends ChatModel {
  /**
   * What the agent's instructions are made with from the next run on, in place of all that was given before; null = nothing. Stored by
   * the next verb. Instructions that were stored with the chat stay as they are. (E94)
   * @param inputs JSON, as the agent's `inputs` schema takes it; the verb that stores it throws {@link ArgumentError} where it does not.
   * @throws {ArgumentError} for what is no object of JSON.
   */
  withInputs(inputs: JsonObject | null): this {
    this.pending.setInputs(inputs)
    return this
  }

  /** What the agent's instructions are made with, as it was given; null = nothing. (E94) */
  get inputs(): JsonObject | null {
    const { inputs } = this.pending.assigned
    return inputs === undefined ? this.row.inputs : inputs
  }
}
