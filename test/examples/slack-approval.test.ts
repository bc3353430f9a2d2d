import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { makeOps } from '../../examples/slack-approval/agents.ts'
import { createApp } from '../../examples/slack-approval/app.ts'
import { isSignedBySlack, post } from '../../examples/slack-approval/slack.ts'
import type { Agent, Threadmill } from '../../src/index.ts'
import { text, toolCalls } from '../../src/testing/index.ts'
import { sqlite } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { until } from '../support/until.ts'

const WAIT_MS = 40_000
const signingSecret = 'a secret of the test'

/** A message as a webhook or a `response_url` gets it. */
interface SlackMessage {
  readonly path: string
  readonly text: string
  readonly replace_original?: boolean
  readonly response_type?: string
  readonly blocks?: readonly { readonly elements?: readonly { readonly action_id: string; readonly value: string }[] }[]
}

describe('The Slack example', function () {
  this.timeout(150_000)
  const bench = useBench(sqlite)
  let slack: Server
  let slackUrl = ''
  let posts: SlackMessage[] = []
  let agent: Agent
  let servers: Server[] = []

  async function listen(server: Server): Promise<string> {
    await once(server, 'listening')
    servers.push(server)
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
  beforeEach(async () => {
    posts = []
    slack = createServer(async (request, response) => {
      const body = (await request.toArray()).join('')
      posts.push({ path: request.url ?? '', ...(JSON.parse(body) as Omit<SlackMessage, 'path'>) })
      response.end('ok')
    }).listen(0, '127.0.0.1')
    slackUrl = await listen(slack)
    agent = makeOps((words) => post(`${slackUrl}/webhook`, { text: words }))
  })
  afterEach(async () => {
    for (const server of servers) {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    }
    servers = []
  })

  /** One process of the application. */
  async function start(): Promise<{ readonly mill: Threadmill; readonly url: string }> {
    const mill = await bench.connect({ agents: [agent] })
    const app = await createApp(mill, { agent, webhookUrl: `${slackUrl}/webhook`, signingSecret })
    mill.startWorkers({ complete: 1, runTools: 0, compact: 0 })
    return { mill, url: await listen(app.listen(0, '127.0.0.1')) }
  }
  async function ask(url: string): Promise<string> {
    const headers = { 'content-type': 'text/plain' }
    const response = await fetch(`${url}/tasks`, { method: 'POST', headers, body: 'Deploy billing' })
    expect(response.status).to.equal(202)
    return ((await response.json()) as { id: string }).id
  }
  const buttons = () => posts.filter((message) => message.blocks !== undefined)
  const texts = (path: string) => posts.filter((message) => message.path === path).map((message) => message.text)

  const now = () => Math.floor(Date.now() / 1_000)
  const sign = (timestamp: number, body: string, secret = signingSecret) =>
    `v0=${createHmac('sha256', secret).update(`v0:${timestamp}:${body}`).digest('hex')}`
  /** What Slack sends when somebody presses a button of the latest message that has some. */
  function press(action: 'approve' | 'deny', user: string): string {
    const elements =
      buttons()
        .at(-1)
        ?.blocks?.flatMap((block) => block.elements ?? []) ?? []
    const actions = elements.filter((element) => element.action_id === action)
    expect(actions).to.have.length(1)
    const payload = { type: 'block_actions', user: { id: user }, response_url: `${slackUrl}/answer/${user}`, actions }
    return new URLSearchParams({ payload: JSON.stringify(payload) }).toString()
  }
  async function send(url: string, body: string, timestamp = now(), signature = sign(timestamp, body)) {
    const headers = {
      'content-type': 'application/x-www-form-urlencoded',
      'x-slack-request-timestamp': String(timestamp),
      'x-slack-signature': signature,
    }
    return (await fetch(`${url}/slack/interactions`, { method: 'POST', headers, body })).status
  }
  const script = (answer: string) =>
    bench.script([toolCalls([{ name: 'deploy', arguments: { service: 'billing' } }]), text(answer)])
  const asked = (count: number) => until(`${count} messages with buttons`, () => buttons().length === count, WAIT_MS)

  it('asks in Slack, deploys when Approve was pressed, and posts the answer', async () => {
    await script('Billing is live.')
    const { mill, url } = await start()
    const id = await ask(url)
    await asked(1)
    expect(buttons()[0]?.text).to.equal('May I run deploy with {"service":"billing"}?')
    expect(await send(url, press('approve', 'U1'))).to.equal(200)
    await until('the answer in Slack', () => texts('/webhook').includes('Billing is live.'), WAIT_MS)
    const contents = (await (await mill.chats.find(id)).messages()).map((message) => message.content)
    expect(contents).to.include('billing is deployed.')
    await until('the click is answered', () => texts('/answer/U1').length === 1, WAIT_MS)
    expect(posts.find(({ path }) => path === '/answer/U1')).to.include({
      text: '<@U1> chose: approve.',
      replace_original: true,
    })
  })

  it('does not deploy when Deny was pressed', async () => {
    await script('Then not.')
    const { mill, url } = await start()
    const id = await ask(url)
    await asked(1)
    expect(await send(url, press('deny', 'U1'))).to.equal(200)
    await until('the answer in Slack', () => texts('/webhook').includes('Then not.'), WAIT_MS)
    const contents = (await (await mill.chats.find(id)).messages()).map((message) => message.content)
    expect(contents).not.to.include('billing is deployed.')
  })

  it('lets one of two people who press at once decide, and tells the other', async () => {
    await script('Done.')
    const [one, two] = [await start(), await start()]
    await ask(one.url)
    await asked(1)
    const clicks = [send(one.url, press('approve', 'U1')), send(two.url, press('deny', 'U2'))]
    expect(await Promise.all(clicks)).to.deep.equal([200, 200])
    await until('both are answered', () => texts('/answer/U1').length + texts('/answer/U2').length === 2, WAIT_MS)
    const answers = posts.filter(({ path }) => path.startsWith('/answer/'))
    expect(answers.filter(({ replace_original }) => replace_original === true)).to.have.length(1)
    const told = answers.filter(({ response_type }) => response_type === 'ephemeral')
    expect(told.map((message) => message.text)).to.deep.equal(['Somebody was quicker than you.'])
    await until('the answer in Slack', () => texts('/webhook').includes('Done.'), WAIT_MS)
  })

  it('refuses what is forged, late, early, repeated or not signed, and decides nothing then', async () => {
    await script('Done.')
    const [one, two] = [await start(), await start()]
    const id = await ask(one.url)
    await asked(1)
    const body = press('approve', 'U1')
    const at = now()
    const refused = [
      await send(one.url, body, at, sign(at, body, 'another secret')),
      await send(one.url, body.replace('approve', 'deny'), at, sign(at, body)),
      await send(one.url, body, at, sign(at - 1, body)),
      await send(one.url, body, at - 301),
      await send(one.url, body, at + 400),
      await send(one.url, body, at, ''),
      await send(one.url, body, Number.NaN, 'v0='),
    ]
    expect(refused).to.deep.equal(refused.map(() => 401))
    expect(await (await one.mill.chats.find(id)).awaitingApproval()).to.equal(true)
    expect(await send(one.url, body, at)).to.equal(200)
    expect([await send(one.url, body, at), await send(two.url, body, at)]).to.deep.equal([401, 401])
    await until('the answer in Slack', () => texts('/webhook').includes('Done.'), WAIT_MS)
    expect(texts('/answer/U1')).to.have.length(1)
  })

  it('asks again after a restart, and the old buttons work too', async () => {
    await script('Done.')
    const first = await start()
    await ask(first.url)
    await asked(1)
    const old = press('approve', 'U1')
    await first.mill.close()
    const second = await start()
    await asked(2)
    expect(await send(second.url, old)).to.equal(200)
    await until('the answer in Slack', () => texts('/webhook').includes('Done.'), WAIT_MS)
  })

  it('reads signatures as Slack documents them', () => {
    const body = Buffer.from(
      'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar' +
        '&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com' +
        '%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c',
    )
    const signature = 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503'
    const request = { signature, timestamp: '1531420618', body }
    const secret = '8f742231b10e8888abcd99yyyzzz85a5'
    expect(isSignedBySlack(request, secret, 1_531_420_700_000)).to.equal(true)
    expect(isSignedBySlack(request, secret)).to.equal(false)
  })
})
