import { expect } from 'chai'
import {
  BadRequestError,
  ClaimLostError,
  ConfigurationError,
  PendingToolCallsError,
  ToolError,
  UnreachableError,
} from '../../src/index.ts'
import { errorFacts } from '../../src/observability/error-facts.ts'

describe('The facts of an error', () => {
  it('are its class, code and status; a provider’s words, which may echo the request, are not among them', () => {
    const error = new BadRequestError('You said: secret', { status: 400, requestId: 'req-1' })
    expect(errorFacts(error)).to.deep.equal({
      name: 'BadRequestError',
      code: 'provider.bad_request',
      retryable: false,
      status: 400,
      requestId: 'req-1',
      message: null,
    })
  })

  it('hold the text of our own errors about state, which name ids only', () => {
    expect(errorFacts(new ClaimLostError('This process no longer holds chat 1')).message).to.contain('chat 1')
    expect(errorFacts(new UnreachableError('Redis at h:1')).message).to.equal('Redis at h:1')
  })

  for (const error of [
    new ToolError('secret'),
    new ConfigurationError('secret'),
    new PendingToolCallsError('secret'),
    new Error('secret'),
    Object.assign(new Error('secret'), { name: 'secret text', code: 'secret text with blanks' }),
  ]) {
    it(`hold no text of a ${error.constructor.name} (${error.name})`, () => {
      expect(JSON.stringify(errorFacts(error))).not.to.contain('secret')
    })
  }

  it('hold any text once content is asked for', () => {
    expect(errorFacts(new Error('secret'), (text) => text.slice(0, 3)).message).to.equal('sec')
  })

  it('take the code from what an error wraps', () => {
    const wrapped = Object.assign(new Error('x'), { parent: Object.assign(new Error('y'), { code: 'ECONNREFUSED' }) })
    expect(errorFacts(wrapped).code).to.equal('ECONNREFUSED')
    expect(errorFacts('thrown text')).to.include({ name: 'string', code: 'error', message: null })
  })
})
