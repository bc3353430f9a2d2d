import type { JsonObject } from '../../models/rows.ts'
import type { AttachmentConverter } from '../attachments/convert.ts'
import type { ModelClient, Prices } from '../providers/provider.ts'
import type { HookLists } from './hooks.ts'
import type { RenderInstructions } from './instructions.ts'
import type { AgentSettings } from './settings.ts'
import type { Tool, ValidatedArguments } from './tool.ts'
import type { OnTurnEnd } from './turn-end.ts'

/** Which text of answers is published while it is made. */
export type Broadcast = 'auto' | 'manual' | 'off'

/** A named configuration that chats refer to and that every process that runs them has. Made by `defineAgent`. */
export interface Agent extends AgentSettings {
  /** What chats refer to it by. */
  readonly name: string
  /** The model to ask; the configured default where it is null. */
  readonly model: string | null
  /** Which provider to ask: `openai` unless the agent brings a client of its own. */
  readonly provider: string
  /** A way to ask models that the agent brings itself; null = by `provider` and the settings. */
  readonly client: ModelClient | null
  /** What the system message says, or what makes it; null = none. */
  readonly instructions: string | RenderInstructions | null
  /** When a function's instructions are made: for each run, or once, to be stored with the chat. */
  readonly instructionsAt: 'run' | 'create'
  /** Reads what its chats are given; null = nothing. */
  readonly inputs: {
    /** Never throws. */
    validate(inputs: JsonObject): Promise<ValidatedArguments>
  } | null
  /** The tools that its chats offer to the model. */
  readonly tools: readonly Tool[]
  /** False asks for whole answers instead of streams. */
  readonly streaming: boolean
  /** Which text of its answers viewers get while it is made. */
  readonly broadcast: Broadcast
  /** Most tool rounds of one turn. */
  readonly rounds: number
  /** From so many calls of one tool in a row on, its results warn the model; null = never. */
  readonly repetitionLimit: number | null
  /** How many calls of one round may run at the same time. 1 = one after the other, in the model's order. */
  readonly concurrency: number
  /** Where tool rounds run: in the worker that asked the model, or handed to the runTools queue. */
  readonly toolExecution: 'inline' | 'queue'
  /** Physical retries of one model call within one run. */
  readonly retries: number
  /** Runs that a turn gets before its failure is final. */
  readonly attempts: number
  /** USD per million tokens; null = as the catalogue says. */
  readonly prices: Prices | null
  /** Tokens that the model takes, where the catalogue does not know it or is wrong. */
  readonly contextWindow: number | null
  /** Limit on one attempt, in ms. */
  readonly timeoutMs: number
  /** Limit on silence within a stream, in ms. */
  readonly idleMs: number
  /** Limit on text, reasoning and tool arguments of one answer together, in bytes of UTF-8. (E100) */
  readonly maxAnswerBytes: number
  /** Sent with each request, beside those of the protocol; null = none. Never stored or logged. */
  readonly headers: Readonly<Record<string, string>> | null
  /** What is made of files that a model can't take, in this order. */
  readonly converters: readonly AttachmentConverter[]
  /** What is called while its chats are run. They take a chat object, which this level knows nothing of. */
  readonly hooks: HookLists<never>
  /** Takes a chat object, which this level knows nothing of. */
  readonly onTurnEnd: OnTurnEnd<never> | null
}
