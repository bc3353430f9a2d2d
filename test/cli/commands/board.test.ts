import { createServer } from 'node:net'
import { expect } from 'chai'
import { sqlite } from '../../support/databases.ts'
import { useBench } from '../../support/mills.ts'
import { until } from '../../support/until.ts'
import { environmentOf, type RunningCli, runCli, startCli } from '../run-cli.ts'

const password = 'a long one'

describe('threadmill board', function () {
  this.timeout(60_000)
  const bench = useBench(sqlite)
  let running: RunningCli[] = []
  afterEach(async () => {
    for (const board of running) board.process.emit('SIGTERM')
    for (const board of running) expect((await board.ended).code).to.equal(0)
    running = []
  })

  const env = (more: Record<string, string> = {}) => {
    const { REDIS_URL = '' } = environmentOf(bench.options())
    return { REDIS_URL, NODE_ENV: 'production', ...more }
  }

  async function start(argv: readonly string[], more: Record<string, string> = {}): Promise<string> {
    const board = startCli(['board', '--port', '0', '--json', ...argv], { env: env(more) })
    running.push(board)
    const ended = board.ended.then(({ err }) => `it ended: ${err}`)
    const said = await Promise.race([until('it says where it is', () => board.out(), 50_000), ended])
    return (JSON.parse(said) as { url: string }).url
  }

  const login = (word: string) => ({ authorization: `Basic ${Buffer.from(`me:${word}`).toString('base64')}` })

  it('serves this machine without a password, needs Redis alone, and refuses to change anything', async () => {
    const url = await start([])
    expect(url).to.match(/^http:\/\/127\.0\.0\.1:\d+\/$/)
    expect((await fetch(url)).status).to.equal(200)
    expect((await fetch(`${url}static/images/logo.svg`)).status).to.equal(200)
    expect((await fetch(`${url}api/queues/complete/pause`, { method: 'PUT' })).status).to.equal(405)
  })

  it('lets nobody in without its password, and changes queues where it is writable', async () => {
    const url = await start(['--host', '0.0.0.0', '--writable'], { THREADMILL_BOARD_PASSWORD: password })
    const here = url.replace('0.0.0.0', '127.0.0.1')
    const refused = await fetch(here)
    expect(refused.status).to.equal(401)
    expect(refused.headers.get('www-authenticate')).to.match(/^Basic /)
    expect((await fetch(`${here}api/queues`, { headers: login('a wrong one') })).status).to.equal(401)
    expect((await fetch(here, { headers: login(password) })).status).to.equal(200)
    for (const act of ['pause', 'resume']) {
      const response = await fetch(`${here}api/queues/complete/${act}`, { method: 'PUT', headers: login(password) })
      expect(response.status).to.equal(200)
    }
  })

  it('exits with 2 for other machines without a password, and names the variable', async () => {
    const { code, err } = await runCli(['board', '--host', '0.0.0.0', '--port', '0'], { env: env() })
    expect(code).to.equal(2)
    expect(err).to.include('THREADMILL_BOARD_PASSWORD')
  })

  it('exits with 2 for a port that is taken, and with 1 where no Redis is', async () => {
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const address = taken.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const { code, err } = await runCli(['board', '--port', String(port)], { env: env() })
    await new Promise((resolve) => taken.close(resolve))
    expect(code).to.equal(2)
    expect(err).to.include('EADDRINUSE')
    const none = await runCli(['board'], { env: { THREADMILL_DATA_DIR: '/nowhere' } })
    expect(none.code).to.equal(1)
    expect(none.err).to.include('No embedded Redis runs')
  })
})
