import { expect } from 'chai'
import { httpError, inStreamError, maskKeys } from '../../src/providers/errors.ts'
import { transportError } from '../../src/providers/transport-errors.ts'

function fail(status: number, body: unknown = '', headers: Record<string, string> = {}) {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return httpError({ status, headers: new Headers(headers), body: text })
}

function systemError(code: string, rest: object = {}): Error {
  return Object.assign(new Error(`failed with ${code}`), { code, ...rest })
}

describe('A response that is not a success', () => {
  const classes: [number, string, boolean][] = [
    [400, 'bad_request', false],
    [401, 'authentication', false],
    [402, 'permission', false],
    [403, 'permission', false],
    [404, 'not_found', false],
    [408, 'timeout', true],
    [409, 'conflict', true],
    [413, 'request_too_large', false],
    [418, 'bad_request', false],
    [422, 'unprocessable', false],
    [429, 'rate_limit', true],
    [500, 'server_error', true],
    [503, 'server_error', true],
    [529, 'overloaded', true],
  ]
  for (const [status, name, retryable] of classes) {
    it(`with status ${status} is ${name}, ${retryable ? '' : 'not '}to be retried`, () => {
      const error = fail(status)
      expect(error).to.include({ code: `provider.${name}`, retryable, status, reachedProvider: true })
      expect(error.message).to.contain(`status ${status}`)
    })
  }

  it('is retried or not as the server says, if it says so', () => {
    expect(fail(429, '', { 'x-should-retry': 'false' }).retryable).to.equal(false)
    expect(fail(400, '', { 'x-should-retry': 'true' }).retryable).to.equal(true)
    expect(fail(500, '', { 'x-should-retry': 'maybe' }).retryable).to.equal(true)
  })

  it('says what the provider said, whatever the shape of its body', () => {
    const bodies = [
      { error: { message: 'Out of cheese', type: 't' } },
      { error: 'Out of cheese', code: 'c' },
      { object: 'error', message: 'Out of cheese' },
      { detail: 'Out of cheese' },
      [{ error: { message: 'Out of cheese' } }],
      'Out of cheese\n',
      '<html><head><style>p{}</style><script>x("Out")</script></head><body><h1>Out of  cheese</h1></body></html>',
    ]
    for (const body of bodies) {
      expect(fail(500, body).message, JSON.stringify(body)).to.equal(
        'The provider answered with status 500: Out of cheese',
      )
    }
    expect(fail(422, { detail: [{ loc: ['model'], msg: 'missing' }] }).message).to.contain('missing')
    expect(fail(500, { unknown: true }).message).to.equal('The provider answered with status 500.')
  })

  it('keeps the provider’s type and code, the request id and the wait', () => {
    const headers = { 'x-request-id': 'req_1', 'retry-after': '41' }
    const error = fail(429, { error: { message: 'Slow', type: 'rate', code: 1300 } }, headers)
    expect(error).to.include({ type: 'rate', providerCode: '1300', requestId: 'req_1', retryAfterMs: 41_000 })
    expect(fail(429, '', { 'request-id': 'req_2' })).to.include({ requestId: 'req_2', retryAfterMs: undefined })
  })

  it('is never retried when the request is too long for the model, and says so', () => {
    const messages = [
      "This model's maximum context length is 10 tokens.",
      'prompt is too long: 333 tokens > 200 maximum',
      "This model's maximum prompt length is 131 but the request contains 625.",
      'Your input exceeds the context window of this model.',
    ]
    for (const message of messages) {
      const error = fail(400, { error: { message } }, { 'x-should-retry': 'true' })
      expect(error.retryable, message).to.equal(false)
      expect(error.hint, message).to.contain('longer than the model takes')
      expect(error.message, message).to.contain(message).and.contain('compact or shorten')
    }
    expect(fail(400, { error: { message: 'x', code: 'context_length_exceeded' } }).hint).to.contain('longer than')
    expect(fail(500, 'the request exceeds the available context size').retryable).to.equal(false)
    expect(fail(400, 'Invalid context type').hint).to.equal(undefined)
  })

  it('is never retried when the request alone is larger than the rate limit', () => {
    const message = 'Request too large for gpt-x on tokens per min (TPM): Limit 30000, Requested 312510.'
    const error = fail(429, { error: { message, code: 'rate_limit_exceeded' } })
    expect(error.retryable).to.equal(false)
    expect(error.hint).to.contain('larger than what the rate limit allows')
    expect(fail(429, { error: { message: 'Rate limit reached' } }).retryable).to.equal(true)
  })

  it('cuts endless messages', () => {
    expect(fail(500, 'long '.repeat(5000)).message.length).to.be.lessThan(1200)
  })
})

describe('API keys in a provider’s words', () => {
  it('are masked when they look like one', () => {
    const keys = [
      'sk-proj-abc123DEF456',
      'sk-ant-api03-xyz_123-abc',
      'xai-abcdefgh12',
      'AIzaSyA1234567890abcdef',
      'gsk_abc123def456',
    ]
    for (const key of keys) {
      const masked = maskKeys(`Incorrect API key provided: ${key}. See the docs.`)
      expect(masked, key).to.equal('Incorrect API key provided: ***. See the docs.')
    }
    expect(maskKeys('Authorization: Bearer abc.def-123')).to.equal('Authorization: Bearer ***')
    expect(maskKeys('Your api key: my-key-1 is invalid')).to.equal('Your api key: *** is invalid')
  })

  it('are masked when they are the one that was sent, whatever it looks like', () => {
    const response = { status: 401, headers: new Headers(), body: '{"error":"no user hunter2hunter2 here"}' }
    const { message, cause } = httpError(response, { secrets: ['hunter2hunter2'] })
    expect(message).to.contain('no user *** here').and.not.contain('hunter2')
    expect(cause).to.equal(undefined)
  })

  it('leave ordinary words alone', () => {
    const text = 'Invalid API key: please check the task-list of model claude-haiku-4-5-20251001 (req_replay_0001)'
    expect(maskKeys(text, ['', 'x', 'a'])).to.equal(text)
  })
})

describe('An error within a successful response', () => {
  const classes: [unknown, string, boolean][] = [
    [{ error: { type: 'overloaded_error', message: 'm' } }, 'overloaded', true],
    [{ error: { type: 'server_error', message: 'm', code: 400 } }, 'server_error', true],
    [{ error: { type: 'tokens', code: 'rate_limit_exceeded', message: 'm' } }, 'rate_limit', true],
    [{ error: { code: 'rate_limit_exceeded', message: 'm' } }, 'rate_limit', true],
    [{ error: { code: 429, message: 'm' } }, 'rate_limit', true],
    [{ error: { code: '401', message: 'm' } }, 'authentication', false],
    [{ error: { type: 'invalid_request_error', message: 'm' } }, 'bad_request', false],
    [{ error: { type: 'never_seen', message: 'm', code: '3230' } }, 'server_error', true],
    ['plain words', 'server_error', true],
    [{ error: { code: 'context_length_exceeded', message: 'm' } }, 'bad_request', false],
  ]
  for (const [body, name, retryable] of classes) {
    it(`is ${name} when it is ${JSON.stringify(body)}`, () => {
      expect(inStreamError(body)).to.include({ code: `provider.${name}`, retryable, status: undefined })
    })
  }

  it('says what the provider said', () => {
    expect(inStreamError({ error: { message: 'queue full (9/8)' } }, { requestId: 'r' })).to.include({
      message: 'The provider reported an error in its answer: queue full (9/8)',
      requestId: 'r',
    })
  })
})

describe('A failed connection', () => {
  const fetchFailed = (cause: unknown) => new TypeError('fetch failed', { cause })

  it('never reached the provider when it was refused, the host is unknown, or TLS failed', () => {
    const codes = [
      'ECONNREFUSED',
      'ENOTFOUND',
      'EAI_AGAIN',
      'UND_ERR_CONNECT_TIMEOUT',
      'CERT_HAS_EXPIRED',
      'ERR_TLS_CERT_ALTNAME_INVALID',
    ]
    for (const code of codes) {
      const error = transportError(fetchFailed(systemError(code)), 'request')
      expect(error, code).to.include({ code: 'provider.connection', retryable: true, reachedProvider: false })
      expect(error.message).to.contain(code)
    }
    expect(
      transportError(fetchFailed(systemError('ETIMEDOUT', { syscall: 'connect' })), 'request').reachedProvider,
    ).to.equal(false)
    const everyAddress = new AggregateError([systemError('ECONNREFUSED'), systemError('ECONNREFUSED')])
    expect(transportError(fetchFailed(everyAddress), 'request').reachedProvider).to.equal(false)
  })

  it('may have reached the provider when it broke later', () => {
    const reset = fetchFailed(systemError('ECONNRESET', { syscall: 'read' }))
    expect(transportError(reset, 'request')).to.include({
      code: 'provider.connection',
      reachedProvider: true,
      retryable: true,
    })
    expect(transportError(new TypeError('terminated'), 'stream')).to.include({
      code: 'provider.stream_cut',
      retryable: true,
    })
    expect(transportError(new TypeError('terminated'), 'json')).to.include({
      code: 'provider.connection',
      retryable: true,
    })
    expect(transportError('odd', 'request').message).to.contain('odd')
  })

  it('is a time-out or a silence when the HTTP client gave up waiting', () => {
    expect(transportError(fetchFailed(systemError('UND_ERR_HEADERS_TIMEOUT')), 'request').code).to.equal(
      'provider.timeout',
    )
    const silent = new TypeError('terminated', { cause: systemError('UND_ERR_BODY_TIMEOUT') })
    expect(transportError(silent, 'stream').code).to.equal('provider.stream_idle')
  })

  it('keeps what was thrown as its cause', () => {
    const thrown = fetchFailed(systemError('ECONNRESET'))
    expect(transportError(thrown, 'request').cause).to.equal(thrown)
  })
})
