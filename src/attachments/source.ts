import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { v7 as uuid } from 'uuid'
import type { AttachmentValue } from '../../models/attachment-value.ts'
import { AttachmentError } from '../errors.ts'
import { openAttachment } from './attachment.ts'
import type { BlobStore } from './store.ts'

/** Bytes with a name. */
export interface AttachmentData {
  /** The bytes, or where they come from. */
  readonly data: Uint8Array | Readable | ReadableStream<Uint8Array> | Blob
  /** What it is called. Default: `attachment`, or the name of a `File`. */
  readonly filename?: string | undefined
  /** Its media type. Default: by the name. */
  readonly contentType?: string | undefined
}

/**
 * A file to attach: the path of one, a URL (`file:`, or `https:` of a host that the application allows), bytes, a file of another message,
 * or null for none.
 */
export type AttachmentSource =
  | string
  | URL
  | Uint8Array
  | Blob
  | Readable
  | ReadableStream<Uint8Array>
  | AttachmentData
  | AttachmentValue
  | null
  | undefined

/** What may be attached. */
export interface AttachmentLimits {
  /** Hosts that files may be fetched from. */
  readonly allowHosts: readonly string[]
  /** Bytes of one file at most. */
  readonly maxBytes: number
}

/** A file with its bytes, ready to be stored. */
export interface LoadedAttachment {
  readonly value: AttachmentValue
  readonly bytes: Uint8Array
}

const fetchLimitMs = 30_000

/**
 * Reads what is to be attached; blank entries are left out.
 * @throws {AttachmentError} for what can't be read, is too large, or is on a host that is not allowed.
 */
export async function loadAttachments(
  sources: AttachmentSource | readonly AttachmentSource[],
  limits: AttachmentLimits & Stored,
): Promise<LoadedAttachment[]> {
  const list = Array.isArray(sources) ? (sources as readonly AttachmentSource[]) : [sources as AttachmentSource]
  const present = list.filter((source) => source !== null && source !== undefined && source !== '')
  const loaded: LoadedAttachment[] = []
  for (const source of present) loaded.push(await load(source as NonNullable<AttachmentSource>, limits))
  return loaded
}

async function load(
  source: NonNullable<AttachmentSource>,
  limits: AttachmentLimits & Stored,
): Promise<LoadedAttachment> {
  const { bytes, filename, contentType } = await read(source, limits)
  requireSize(bytes.byteLength, filename, limits)
  const digest = createHash('sha256').update(bytes).digest('hex')
  const type = contentType ?? (await typeOf(filename))
  return {
    bytes,
    value: { id: uuid(), filename, contentType: type.split(';')[0] ?? type, byteSize: bytes.byteLength, digest },
  }
}

interface Stored {
  readonly store: BlobStore
}

interface Read {
  readonly bytes: Uint8Array
  readonly filename: string
  readonly contentType?: string | undefined
}

async function read(source: NonNullable<AttachmentSource>, limits: AttachmentLimits & Stored): Promise<Read> {
  if (typeof source === 'string' && !/^(https?|file):\/\//i.test(source)) return readPath(source, limits)
  if (typeof source === 'string' || source instanceof URL) return readUrl(urlOf(source), limits)
  if (typeof source !== 'object') throw noSource()
  if ('digest' in source && typeof source.digest === 'string') return readStored(source as AttachmentValue, limits)
  const { data, filename, contentType } = 'data' in source ? source : { data: source as AttachmentData['data'] }
  const name = filename ?? (data instanceof File ? data.name : 'attachment')
  const type = contentType ?? (data instanceof Blob && data.type !== '' ? data.type : undefined)
  return { bytes: await bytesOf(data, name, limits), filename: name, contentType: type }
}

function urlOf(source: string | URL): URL {
  try {
    return new URL(source)
  } catch (error) {
    throw new AttachmentError('What is to be attached begins like a URL and is none.', { cause: error })
  }
}

/** A file of another message: it is stored already. */
async function readStored(value: AttachmentValue, { store }: Stored): Promise<Read> {
  const { filename, contentType } = value
  return { bytes: await openAttachment(value, store).bytes(), filename, contentType }
}

async function readPath(path: string, limits: AttachmentLimits): Promise<Read> {
  const filename = basename(path)
  try {
    requireSize((await stat(path)).size, filename, limits)
    return { bytes: await readFile(path), filename }
  } catch (error) {
    if (error instanceof AttachmentError) throw error
    throw new AttachmentError(`The file ${filename} can't be attached: it can't be read.`, { cause: error })
  }
}

async function readUrl(url: URL, limits: AttachmentLimits): Promise<Read> {
  if (url.protocol === 'file:') return readPath(fileURLToPath(url), limits)
  if (!limits.allowHosts.includes(url.host) && !limits.allowHosts.includes(url.hostname)) {
    throw new AttachmentError(
      `Nothing is fetched from ${url.host}: name it in connect({ attachments: { allowHosts } }), or attach the bytes.`,
    )
  }
  const filename = nameIn(url)
  let response: Response | undefined
  try {
    // A redirect could lead to a host that nobody allowed.
    response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(fetchLimitMs) })
    if (!response.ok) throw new AttachmentError(`${url.host} answered ${response.status} for ${filename}.`)
    const length = Number(response.headers.get('content-length') ?? 0)
    requireSize(length, filename, limits)
    const contentType = response.headers.get('content-type') ?? undefined
    const bytes = response.body === null ? new Uint8Array() : await bytesOf(response.body, filename, limits)
    return { bytes, filename, contentType }
  } catch (error) {
    if (error instanceof AttachmentError) throw error
    throw new AttachmentError(`The file ${filename} can't be fetched from ${url.host}.`, { cause: error })
  } finally {
    // What nobody reads would hold its connection.
    if (response?.bodyUsed === false) await response.body?.cancel().catch(() => {})
  }
}

function nameIn(url: URL): string {
  const name = basename(url.pathname)
  try {
    return decodeURIComponent(name) || url.hostname
  } catch {
    // A percent sign that begins no escape.
    return name
  }
}

async function bytesOf(data: AttachmentData['data'], filename: string, limits: AttachmentLimits): Promise<Uint8Array> {
  if (data instanceof Uint8Array) return data
  if (data instanceof Blob) {
    requireSize(data.size, filename, limits)
    return new Uint8Array(await data.arrayBuffer())
  }
  if (!(data instanceof Readable || data instanceof ReadableStream)) throw noSource()
  try {
    return await buffer(limited(data, filename, limits))
  } catch (error) {
    if (error instanceof AttachmentError) throw error
    throw new AttachmentError(`The stream of ${filename} broke off, or was read before.`, { cause: error })
  }
}

function noSource(): AttachmentError {
  return new AttachmentError(
    'An attachment is a path, a URL, bytes, a stream, a Blob, { data, filename, contentType }, or a file of another message.',
  )
}

/** A stream that is too long is not read to its end. */
async function* limited(
  stream: AsyncIterable<Uint8Array | string>,
  filename: string,
  limits: AttachmentLimits,
): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of stream) {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    size += bytes.byteLength
    requireSize(size, filename, limits)
    yield bytes
  }
}

function requireSize(size: number, filename: string, { maxBytes }: AttachmentLimits): void {
  if (size <= maxBytes) return
  throw new AttachmentError(
    `The file ${filename} has more than ${maxBytes} bytes, which is what an attachment may have.`,
  )
}

/** By its name. The table of types is loaded with the first file. */
async function typeOf(filename: string): Promise<string> {
  const { default: mime } = await import('mime')
  return mime.getType(filename) ?? 'application/octet-stream'
}
