import type { ChatCompletionCreateParams } from 'openai/resources/chat/completions'
import { hasLogin } from '../../config/base-url.ts'
import type { JsonObject } from '../../models/rows.ts'
import { ConfigurationError } from '../errors.ts'
import { AnswerBudget } from './answer-budget.ts'
import { readAnswerStream } from './answer-stream.ts'
import { AttemptLimits } from './attempt-limits.ts'
import { type DocumentForm, supportsFile } from './chat-completions/files.ts'
import { AnswerReader } from './chat-completions/read.ts'
import { renderRequest } from './chat-completions/render.ts'
import { httpError, maskKeys, requestIdOf } from './errors.ts'
import { beginningOf } from './limited-body.ts'
import type { Answer, AttemptOptions, ModelAccess, ModelClient, ModelRequest } from './provider.ts'
import { transportError } from './transport-errors.ts'

/** How a server that speaks Chat Completions is reached. */
export interface OpenAiClientOptions {
  /** May be empty for servers that want none. */
  readonly apiKey: string
  /** Up to and without `/chat/completions`. Default: OpenAI's own. */
  readonly baseURL?: string | undefined
  /** The name that usage entries carry. Default `openai`. */
  readonly provider?: string | undefined
  /** OpenAI's organization. Default: none. */
  readonly organization?: string | undefined
  /** OpenAI's project. Default: none. */
  readonly project?: string | undefined
  /** Stands in for the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

/** These know `max_completion_tokens`, and their newer models refuse `max_tokens`; other servers only know the latter. */
const OPENAI_MODELS = new Set(['openai', 'azure'])

/** How much of a refusal is read: what it says stands at its beginning. */
const MAX_ERROR_BYTES = 64 * 1024

/**
 * A client for OpenAI's Chat Completions and everything that speaks them. An attempt is exactly one HTTP request.
 * @throws {ConfigurationError} when the key or the base URL can't be used at all.
 */
export function openAiClient(options: OpenAiClientOptions): ModelClient {
  checkOptions(options)
  const provider = options.provider ?? 'openai'
  return {
    provider,
    supportsAttachment: (contentType) => supportsFile(contentType, documentsOf(provider)),
    // What the SDK takes as a body is JSON.
    render: (request) => render(provider, request) as unknown as JsonObject,
    withAccess: (access) => openAiClient({ ...options, ...said(access) }),
    async attempt(request, attempt) {
      const limits = new AttemptLimits(attempt.signal, attempt.timeoutMs)
      try {
        const response = await send(options, provider, request, attempt, limits)
        return await read(options, request, response, attempt, limits)
      } finally {
        limits.stop()
      }
    },
  }
}

function said(access: ModelAccess): ModelAccess {
  return Object.fromEntries(Object.entries(access).filter(([, value]) => value !== undefined))
}

function render(provider: string, request: ModelRequest): ChatCompletionCreateParams {
  if (request.payload !== undefined) return request.payload as unknown as ChatCompletionCreateParams
  const isOpenRouter = provider === 'openrouter'
  return renderRequest(request, {
    outputLimitName: OPENAI_MODELS.has(provider) ? 'max_completion_tokens' : 'max_tokens',
    reasoning: isOpenRouter ? 'object' : 'effort',
    cacheBoundaries: isOpenRouter || provider === 'anthropic',
    documents: documentsOf(provider),
  })
}

function documentsOf(provider: string): DocumentForm {
  return provider === 'perplexity' ? 'file_url' : 'file'
}

let sdkLoaded: Promise<typeof import('openai')> | undefined

/** Loaded with the first request: a process that only stores messages has no use for it. Asking again for it takes time too. */
function loadSdk(): Promise<typeof import('openai')> {
  sdkLoaded ??= import('openai')
  return sdkLoaded
}

/**
 * Sends the request. The SDK hides what `fetch` failed with and drops error bodies of unusual shape, so both are
 * caught before it sees them.
 */
async function send(
  options: OpenAiClientOptions,
  provider: string,
  request: ModelRequest,
  attempt: AttemptOptions,
  limits: AttemptLimits,
): Promise<Response> {
  let failure: unknown
  const fetch = async (input: string | URL | Request, init?: RequestInit) => {
    try {
      return await fetchSuccess(options, attempt, input, init)
    } catch (error) {
      failure = error
      throw error
    }
  }
  const body = render(provider, request)
  const { default: OpenAI } = await loadSdk()
  const sdk = new OpenAI({ ...sdkOptions(options), fetch })
  const headers = { ...(options.apiKey === '' ? { authorization: null } : {}), ...attempt.headers }
  const settings = { signal: limits.signal, headers, timeout: sdkTimeout(attempt.timeoutMs) }
  try {
    return await limits.wait(sdk.chat.completions.create(body, settings).asResponse())
  } catch (error) {
    limits.signal.throwIfAborted()
    throw failure ?? unsendable(error, secretsOf(options, attempt))
  }
}

async function fetchSuccess(
  options: OpenAiClientOptions,
  attempt: AttemptOptions,
  input: string | URL | Request,
  init: RequestInit | undefined,
): Promise<Response> {
  let response: Response
  try {
    response = await (options.fetch ?? globalThis.fetch)(input, init)
  } catch (error) {
    throw transportError(error, 'request')
  }
  if (response.ok) return response
  const body = await beginningOf(response.body, MAX_ERROR_BYTES)
  throw httpError(
    { status: response.status, headers: response.headers, body },
    { secrets: secretsOf(options, attempt) },
  )
}

async function read(
  options: OpenAiClientOptions,
  request: ModelRequest,
  response: Response,
  attempt: AttemptOptions,
  limits: AttemptLimits,
): Promise<Answer> {
  const requestId = requestIdOf(response.headers)
  const context = { secrets: secretsOf(options, attempt), ...(requestId === undefined ? {} : { requestId }) }
  return readAnswerStream(response.body, new AnswerReader(context), {
    streaming: request.streaming,
    attempt,
    limits,
    budget: new AnswerBudget(request.model, attempt.maxAnswerBytes),
    context,
  })
}

/** What a provider may not say back to us: the key, and headers, which may hold another one, behind a word such as `Bearer`. */
function secretsOf({ apiKey }: OpenAiClientOptions, { headers = {} }: AttemptOptions): readonly string[] {
  const values = Object.values(headers)
  return [apiKey, ...values, ...values.map((value) => value.slice(value.indexOf(' ') + 1))]
}

/** What the SDK throws before it sends anything quotes headers, so it is not kept as the cause. */
function unsendable(error: unknown, secrets: readonly string[]): ConfigurationError {
  const why = maskKeys(error instanceof Error ? error.message : String(error), secrets)
  return new ConfigurationError(`The request can't be sent: check its headers and provider options. (${why})`)
}

/** Keeps the SDK from filling gaps with variables meant for OpenAI: null means none, undefined would read them. */
function sdkOptions({ apiKey, baseURL, organization, project }: OpenAiClientOptions) {
  // OpenAI itself goes by the variables where nothing is said.
  const silence = baseURL === undefined ? {} : { organization: null, project: null }
  const account = {
    ...silence,
    ...(organization === undefined ? {} : { organization }),
    ...(project === undefined ? {} : { project }),
  }
  return {
    apiKey: apiKey === '' ? 'none' : apiKey,
    adminAPIKey: null,
    baseURL: baseURL ?? null,
    maxRetries: 0,
    ...account,
  }
}

/** The SDK's own timer covers the headers only, so ours must fire first. */
function sdkTimeout(timeoutMs: number): number {
  return Math.min(Math.ceil(timeoutMs) + 60_000, 2_147_483_647)
}

function checkOptions({ apiKey, baseURL }: OpenAiClientOptions): void {
  if (!/^[\x21-\x7e]*$/.test(apiKey)) {
    throw new ConfigurationError(
      'The API key holds blanks or characters that no HTTP header can carry. Check how it was copied.',
    )
  }
  if (baseURL !== undefined && !(URL.canParse(baseURL) && /^https?:/i.test(baseURL))) {
    throw new ConfigurationError('The base URL of the provider is not an http or https URL.')
  }
  if (baseURL !== undefined && hasLogin(baseURL)) {
    throw new ConfigurationError(
      'The base URL of the provider holds a user name or a password, which no request can carry: send them as a header.',
    )
  }
}
