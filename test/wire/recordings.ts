import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** A message of a recorded request. */
export interface RecordedMessage {
  readonly role: 'system' | 'developer' | 'user' | 'assistant' | 'tool'
  readonly content?: unknown
  readonly tool_call_id?: string
  readonly tool_calls?: readonly {
    readonly id: string
    readonly function: { readonly name: string; readonly arguments: string }
  }[]
}

export interface RecordedTool {
  readonly function: {
    readonly name: string
    readonly description: string
    readonly parameters?: Readonly<Record<string, unknown>>
  }
}

/** What a right client makes of one response. */
export interface ExpectedExchange {
  readonly ok: boolean
  readonly text: string
  readonly thinking: string | null
  readonly finish_reason: string | null
  readonly tool_calls: readonly {
    readonly id: string
    readonly name: string
    readonly arguments: Record<string, unknown>
    readonly arguments_raw: string
    readonly malformed?: boolean
  }[]
  readonly usage: Readonly<Record<'input' | 'output' | 'cached' | 'cache_write' | 'reasoning', number | null>> | null
  readonly error: { readonly class: string; readonly message: string } | null
}

export interface Exchange {
  readonly request: {
    readonly base_path: string
    readonly body: {
      readonly model: string
      readonly messages: readonly RecordedMessage[]
      readonly stream?: boolean
      readonly temperature?: number
      readonly tools?: readonly RecordedTool[]
    }
  }
  readonly response: {
    readonly status: number
    readonly headers: Readonly<Record<string, string>>
    readonly sse?: string
    readonly raw?: string
    readonly body?: unknown
  }
  readonly expected: ExpectedExchange
}

export interface Conversation {
  readonly file: string
  readonly provider: string
  readonly features: readonly string[]
  readonly expected: {
    readonly ok: boolean
    readonly final_text: string | null
    readonly usage_sum: { readonly input: number | null; readonly output: number | null }
  }
  readonly exchanges: readonly Exchange[]
}

/** Where the recordings are: THREADMILL_WIRE, else beside the project. */
export const recordingsFolder = process.env.THREADMILL_WIRE ?? resolve(import.meta.dirname, '../../../shared/wire/dev')

/** The files of recorded Chat Completions conversations; none when there is no such folder. */
export function recordedFiles(): string[] {
  if (!existsSync(recordingsFolder)) return []
  return readdirSync(recordingsFolder)
    .filter((name) => /\.chat\..*\.json$/.test(name))
    .sort()
}

/** One conversation. `whole` writes out the long texts that the recording abbreviates. */
export function readConversation(file: string, { whole = false } = {}): Conversation {
  const text = readFileSync(join(recordingsFolder, file), 'utf8')
  return { ...JSON.parse(whole ? text.replaceAll('<MASSIVE_TEXT>', 'a'.repeat(1_000_000)) : text), file }
}

/** Whether a conversation sends pictures or files. */
export const hasOtherInput = ({ features }: Conversation): boolean => features.some((name) => name.startsWith('input:'))

/** The text of a recorded message: as it is, its text parts joined, or as JSON where it is neither. */
export function contentText(content: unknown): string {
  if (content === null || content === undefined) return ''
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return JSON.stringify(content)
  return content.map((part) => (typeof part === 'string' ? part : (part?.text ?? ''))).join('')
}

export const isSystem = ({ role }: RecordedMessage): boolean => role === 'system' || role === 'developer'

/** What the recorded client answered to each call, by the call's id; only of the last round of these messages. */
export function lastResults(messages: readonly RecordedMessage[]): ReadonlyMap<string, string> {
  const from = messages.findLastIndex((message) => message.role !== 'tool') + 1
  return new Map(messages.slice(from).map((message) => [message.tool_call_id ?? '', contentText(message.content)]))
}

/** The agents that a conversation is run by: one asks for streams, the other for whole answers. */
export const agentName = (file: string, streaming: boolean): string =>
  `${file.replace('.json', '')} (${streaming ? 'stream' : 'whole'})`
