import { expect } from 'chai'
import { type Chat, defineAgent, type Threadmill } from '../../../src/index.ts'
import { onEachDatabase } from '../../support/databases.ts'
import { useBench } from '../../support/mills.ts'
import { environmentOf, jsonLines, runCli } from '../run-cli.ts'

const support = defineAgent({ name: 'support' })
const absent = '0199d2a4-5c1e-7000-8000-000000000000'

onEachDatabase('threadmill retry and enqueue', (kind) => {
  const bench = useBench(kind)
  let mill: Threadmill
  const run = (...argv: string[]) => runCli(argv, { env: environmentOf(bench.options()) })
  const row = async (chat: Chat) =>
    (await mill.models.Chat.findByPk(chat.id, { rejectOnEmpty: true })).get({ plain: true })

  beforeEach(async () => {
    mill = await bench.connect({ agents: [support] })
    await mill.models.Chat.destroy({ where: {} })
  })

  async function chat(failed: string | null = null): Promise<Chat> {
    const made = await mill.chats.create({ agent: support })
    await made.askLater('help')
    if (failed !== null) {
      const failure = { code: failed, message: 'no', turn: 1, at: new Date().toISOString() }
      await mill.models.Chat.update({ failure, rounds: 3 }, { where: { id: made.id } })
    }
    return made
  }

  it('lifts the failure of a chat and wants it again', async () => {
    const failed = await chat('provider.authentication')
    const { code, out, err } = await run('retry', failed.id)
    expect({ code, err }).to.deep.equal({ code: 0, err: '' })
    expect(out).to.equal(`${failed.id}: failed with provider.authentication; runs again\n`)
    const after = await row(failed)
    expect(after).to.include({ failure: null, rounds: 0, wantedQueue: 'complete' })
    expect(after.wantedAt).to.be.instanceOf(Date)
  })

  it('leaves a chat alone that has not failed, unless it is forced, and does the others all the same', async () => {
    const [fine, failed] = [await chat(), await chat('error')]
    const { code, out } = await run('retry', fine.id, failed.id, absent, '--json')
    expect(code).to.equal(1)
    const outcomes = jsonLines(out) as { chatId: string; done?: string; error?: { code: string } }[]
    expect(outcomes.map(({ chatId, error }) => [chatId, error?.code ?? 'done'])).to.deep.equal([
      [fine.id, 'chat.not_failed'],
      [failed.id, 'done'],
      [absent, 'chat.not_found'],
    ])
    expect((await row(fine)).wantedAt).to.equal(null)
    expect(await run('retry', fine.id, '--force')).to.include({ code: 0 })
    expect((await row(fine)).wantedAt).to.be.instanceOf(Date)
  })

  it('retries all that failed, or those with one code', async () => {
    const [key, other, fine] = [await chat('provider.authentication'), await chat('error'), await chat()]
    const { out } = await run('retry', '--all-failed', '--code', 'provider.authentication', '--json')
    expect(jsonLines(out).map((line) => (line as { chatId: string }).chatId)).to.deep.equal([key.id])
    expect((await row(other)).failure).to.include({ code: 'error' })
    expect(await run('retry', '--all-failed')).to.include({ code: 0 })
    expect((await row(other)).failure).to.equal(null)
    expect((await row(fine)).wantedAt).to.equal(null)
    expect(await run('retry', '--all-failed')).to.deep.equal({ code: 0, out: '', err: 'No chat has failed.\n' })
  })

  it('enqueues chats from stdin, later, for a queue that is named', async () => {
    const [one, two] = [await chat(), await chat()]
    const before = Date.now()
    const { code, out } = await runCli(['enqueue', '-', '--queue', 'runTools', '--delay', '60000'], {
      env: environmentOf(bench.options()),
      stdin: `${one.id}\n\n ${two.id}\r\n${one.id}`,
    })
    expect({ code, out }).to.deep.equal({
      code: 0,
      out: `${one.id}: enqueued, to run in 60000 ms\n${two.id}: enqueued, to run in 60000 ms\n`,
    })
    for (const made of [one, two]) {
      const { wantedAt, wantedQueue } = await row(made)
      expect(wantedQueue).to.equal('runTools')
      expect((wantedAt?.getTime() ?? 0) - before).to.be.within(50_000, 120_000)
    }
  })

  it('adds a message first', async () => {
    const made = await chat()
    expect(await run('enqueue', made.id, '--message', 'Is it on its way?')).to.include({ code: 0 })
    expect((await made.messages()).map(({ content }) => content)).to.deep.equal(['help', 'Is it on its way?'])
    expect((await row(made)).wantedAt).to.be.instanceOf(Date)
  })

  it('says which chat does not exist, and exits with 1', async () => {
    const { code, out, err } = await run('enqueue', absent)
    expect({ code, out }).to.deep.equal({ code: 1, out: '' })
    expect(err).to.include(absent).and.to.include('(chat.not_found)')
  })
})
