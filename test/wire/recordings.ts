import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { AttachmentData } from '../../src/index.ts'

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

/** A picture, a sound or a file in a recorded message. */
interface RecordedPart {
  readonly type: string
  readonly image_url?: { readonly url: string }
  readonly file_url?: { readonly url: string }
}

/** Whether a conversation has a provider fetch something: here bytes are sent. */
export const hasAddresses = ({ exchanges }: Conversation): boolean =>
  exchanges.some(({ request }) =>
    request.body.messages.some((message) => otherParts(message.content).some((part) => bytesOf(part) === null)),
  )

/** The parts of a content that are pictures, sounds or files. */
export function otherParts(content: unknown): RecordedPart[] {
  const types = ['image_url', 'input_audio', 'file', 'file_url']
  return Array.isArray(content) ? content.filter((part) => types.includes(part?.type)) : []
}

/** The bytes that a part holds; null for one that says where they are. */
export function bytesOf({ type, image_url: image, file_url: file }: RecordedPart): AttachmentData | null {
  const picture = /^data:([^;]+);base64,(.*)$/s.exec(image?.url ?? '')
  if (type === 'image_url' && picture !== null) {
    return { data: Buffer.from(picture[2] ?? '', 'base64'), contentType: picture[1] }
  }
  if (type !== 'file_url' || file === undefined || /^https?:/.test(file.url)) return null
  const data = Buffer.from(file.url, 'base64')
  // It has no name: PDFs and Word documents, which are archives, say what they are.
  return { data, filename: data.subarray(0, 2).toString() === 'PK' ? 'a.docx' : 'a.pdf' }
}

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
