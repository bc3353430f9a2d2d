import { randomUUID } from 'node:crypto'
import { chop, intoOddPieces, intoPieces } from './pieces.ts'
import type { AnswerReply, BadEnd, BrokenReply, RawReply } from './reply.ts'
import type { LoggedRequest } from './request-log.ts'
import type { StreamHead } from './sse.ts'
import { deltaEvent, errorEvent, sseDone, toolCallEvents, usageEvent } from './sse.ts'
import { defaultUsage, withTotal } from './usage.ts'
import type { WireUsage } from './wire.ts'

/** Some bytes to send after some ms. */
export interface Chunk {
  readonly delayMs: number
  readonly bytes: string | Uint8Array
}

/** A reply worked out for one request: exactly what is sent and how it ends. */
export interface Playback {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Everything before the end. */
  readonly chunks: readonly Chunk[]
  /** The end, one act: the bytes (none for a hang), then what becomes of the connection. */
  readonly end: Chunk & { readonly act: 'finish' | 'fail' | 'destroy' | 'hang' }
}

const sseHeaders = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' }
const jsonHeaders = { 'content-type': 'application/json' }

/** Works out what is sent for a request. Pure but for fresh ids and the date in the answer. */
export function playbackOf(reply: AnswerReply | RawReply | BrokenReply, request: LoggedRequest): Playback {
  if (reply.kind === 'raw') return rawPlayback(reply)
  if (reply.kind === 'answer') return answerPlayback(reply, request, headOf(reply, request))
  const { after, end } = reply
  if (after === null) return { status: 200, headers: {}, chunks: [], end: lastAct(end) }
  if (after.kind === 'raw') {
    const raw = rawPlayback(after)
    return broken({ ...raw, chunks: [...raw.chunks, raw.end] }, end, null)
  }
  const head = headOf(after, request)
  const begun = answerPlayback(after, request, head)
  return request.body.stream === true ? broken(begun, end, head) : brokenWhole(begun, end)
}

const answerPlayback = (reply: AnswerReply, request: LoggedRequest, head: StreamHead): Playback =>
  request.body.stream === true ? streamed(reply, request, head) : whole(reply, request, head)

/** An answer with its call ids made and its arguments as text. */
function settle(reply: AnswerReply, request: LoggedRequest) {
  const calls = reply.calls.map((call) => ({
    id: call.id === undefined ? `call_${randomUUID().replaceAll('-', '').slice(0, 24)}` : call.id,
    name: call.name,
    arguments: typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments),
  }))
  const counted = { text: reply.text, thinking: reply.thinking, calls }
  const usage: WireUsage | null =
    reply.usage === null ? null : withTotal(reply.usage ?? defaultUsage(request.body, counted))
  return { calls, usage }
}

const headOf = (reply: AnswerReply, request: LoggedRequest): StreamHead => ({
  id: `chatcmpl-${randomUUID()}`,
  model: reply.model ?? request.model,
  created: Math.floor(Date.now() / 1000),
  includeUsage: request.body.stream_options?.include_usage === true,
})

function streamed(reply: AnswerReply, request: LoggedRequest, head: StreamHead): Playback {
  const { calls, usage } = settle(reply, request)
  const parts = [
    ...chop(reply.thinking, reply.chunks).map((piece) => deltaEvent(head, { reasoning_content: piece })),
    ...chop(reply.text, reply.chunks).map((piece) => deltaEvent(head, { content: piece })),
    ...calls.flatMap((call, at) => toolCallEvents(head, at, call, intoPieces(call.arguments, reply.argumentChunks))),
  ]
  const opening = deltaEvent(head, { role: 'assistant', content: calls.length > 0 && reply.text === '' ? null : '' })
  const bodies = [opening + (parts[0] ?? ''), ...parts.slice(1)]
  const end =
    deltaEvent(head, {}, reply.finishReason) +
    (head.includeUsage && usage !== null ? usageEvent(head, usage) : '') +
    sseDone
  return {
    status: 200,
    headers: sseHeaders,
    chunks: bodies.map((bytes, at) => ({ bytes, delayMs: at === 0 ? reply.delayMs : reply.chunkDelayMs })),
    end: { bytes: end, delayMs: reply.chunkDelayMs, act: 'finish' },
  }
}

function whole(reply: AnswerReply, request: LoggedRequest, { id, model, created }: StreamHead): Playback {
  const { calls, usage } = settle(reply, request)
  const wireCalls = calls.map((call) => ({
    ...(call.id === null ? {} : { id: call.id }),
    type: 'function',
    function: { name: call.name, arguments: call.arguments },
  }))
  const message = {
    role: 'assistant',
    content: reply.text === '' && calls.length > 0 ? null : reply.text,
    refusal: null,
    ...(reply.thinking === '' ? {} : { reasoning_content: reply.thinking }),
    ...(calls.length === 0 ? {} : { tool_calls: wireCalls }),
  }
  const choice = { index: 0, message, logprobs: null, finish_reason: reply.finishReason }
  const answer = {
    id,
    object: 'chat.completion',
    created,
    model,
    choices: [choice],
    ...(usage === null ? {} : { usage }),
  }
  return {
    status: 200,
    headers: jsonHeaders,
    chunks: [],
    end: { bytes: JSON.stringify(answer), delayMs: reply.delayMs, act: 'finish' },
  }
}

function rawPlayback(reply: RawReply): Playback {
  const pieces = intoOddPieces(reply.bytes, reply.pieces)
  return {
    status: reply.status,
    headers: reply.headers,
    chunks: pieces.slice(0, -1).map((bytes) => ({ bytes, delayMs: 0 })),
    end: { bytes: pieces.at(-1) ?? '', delayMs: 0, act: reply.status < 400 ? 'finish' : 'fail' },
  }
}

/** Puts a bad end in place of the good one: finish reason, usage and `[DONE]` are left out. */
function broken(begun: Playback, end: BadEnd, head: StreamHead | null): Playback {
  const finish = end.type === 'cut' && end.finishReason !== undefined && head !== null
  const last = (finish ? deltaEvent(head, {}, end.finishReason) : '') + (end.type === 'cut' && end.done ? sseDone : '')
  const chunks = last === '' ? begun.chunks : [...begun.chunks, { bytes: last, delayMs: 0 }]
  return { ...begun, chunks, end: lastAct(end) }
}

/** The same for an answer that isn't streamed: an error takes its place, or half of its JSON is sent. */
function brokenWhole(begun: Playback, end: BadEnd): Playback {
  const { bytes, delayMs } = begun.end
  if (end.type === 'error') {
    return { ...begun, end: { bytes: JSON.stringify({ error: end.error }), delayMs, act: 'fail' } }
  }
  const json = String(bytes)
  return { ...begun, chunks: [{ bytes: json.slice(0, Math.ceil(json.length / 2)), delayMs }], end: lastAct(end) }
}

function lastAct(end: BadEnd): Playback['end'] {
  if (end.type === 'error') return { bytes: errorEvent(end.error), delayMs: 0, act: 'fail' }
  if (end.type === 'cut') return { bytes: '', delayMs: end.delayMs, act: 'destroy' }
  return { bytes: '', delayMs: 0, act: 'hang' }
}
