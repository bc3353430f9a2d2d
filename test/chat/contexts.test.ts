import { createServer, type IncomingMessage, type Server } from 'node:http'
import { expect } from 'chai'
import { ArgumentError, ConfigurationError, UnreachableError } from '../../src/index.ts'
import { text } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { errorFrom } from '../tools/rows.ts'

onEachDatabase('What a context says', (kind) => {
  const bench = useBench(kind, { claimTtlMs: 45_000 })
  let echo: Server
  let baseURL: string
  before(async () => {
    // Refuses each request and says back what it was sent, as some gateways do.
    echo = createServer((request: IncomingMessage, response) => {
      const message = `not welcome: ${JSON.stringify(request.headers)}`
      response.writeHead(401, { 'content-type': 'application/json' }).end(JSON.stringify({ error: { message } }))
    })
    await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve))
    baseURL = `http://127.0.0.1:${(echo.address() as { port: number }).port}/v1`
  })
  after(async () => {
    echo.closeAllConnections()
    await new Promise((resolve) => echo.close(resolve))
  })

  it('in headers is masked where the provider echoes it, in the error and in the row (E21)', async () => {
    const headers = { 'api-key': 'key-in-a-header', authorization: 'Token word-of-a-tenant' }
    const mill = await bench.connect({ contextFor: () => ({ baseURL, headers }) })
    const chat = await mill.chats.create()
    const error = await errorFrom(() => chat.ask('Go'))
    expect((error as { code?: string }).code).to.equal('provider.authentication')
    const failure = (await mill.models.Chat.findByPk(chat.id))?.failure
    for (const said of [String(error), JSON.stringify(failure)]) {
      expect(said)
        .to.contain('not welcome')
        .and.not.match(/key-in-a-header|word-of-a-tenant/)
    }
  })

  it('of an endpoint may hold no user name and password: no request could carry them (E21)', async () => {
    const secret = baseURL.replace('://', '://tenant:pass-word-1@')
    const mill = await bench.connect({ contextFor: () => ({ apiKey: 'k', baseURL: secret }) })
    const chat = await mill.chats.create()
    const refused = [
      [ArgumentError, () => chat.withContext({ baseURL: secret })],
      [ConfigurationError, () => chat.ask('Go')],
    ] as const
    for (const [kindOf, act] of refused) {
      const error = await errorFrom(act)
      expect(error).to.be.instanceOf(kindOf)
      expect((error as Error).message)
        .to.contain('baseURL')
        .and.not.contain('pass-word-1')
    }
    expect(JSON.stringify((await mill.models.Chat.findByPk(chat.id))?.failure)).to.not.contain('pass-word-1')
  })

  it('is asked for by a function whose errors keep their text out of rows, and their cause (E21)', async () => {
    await bench.script(() => text('Yes'))
    const thrown: Error[] = [new Error('no lease for token-of-the-vault')]
    const mill = await bench.connect({
      contextFor: () => {
        const error = thrown.shift()
        if (error !== undefined) throw error
        return null
      },
    })
    const [cause] = thrown
    const chat = await mill.chats.create()
    const error = await errorFrom(() => chat.ask('Go'))
    expect(error).to.be.instanceOf(ConfigurationError)
    expect((error as Error).cause).to.equal(cause)
    const failure = (await mill.models.Chat.findByPk(chat.id))?.failure
    expect(failure?.message).to.contain(chat.id).and.not.contain('token-of-the-vault')
    expect((error as Error).message).to.equal(failure?.message)

    const away = new UnreachableError('The store of keys is away.')
    thrown.push(away)
    expect(await errorFrom(() => chat.complete())).to.equal(away)
    expect((await chat.complete())?.content).to.equal('Yes')
  })
})
