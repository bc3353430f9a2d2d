import { expect } from 'chai'
import { migrations } from '../../../models/migrations/index.ts'
import { onEachDatabase, type TestDatabase } from '../../support/databases.ts'
import { runCli } from '../run-cli.ts'

const names = migrations.map(({ name }) => name)

onEachDatabase('threadmill migrate', (kind) => {
  let database: TestDatabase
  const migrate = async (...more: string[]) => {
    const { code, out, err } = await runCli(['migrate', '--json', ...more], { env: { DATABASE_URL: database.url } })
    expect({ code, err }).to.deep.equal({ code: 0, err: '' })
    return JSON.parse(out)
  }
  const applied = async () => {
    const steps: { name: string; appliedAt: string | null }[] = await migrate('--status')
    expect(steps.map(({ name }) => name)).to.deep.equal(names)
    return steps.filter(({ appliedAt }) => appliedAt !== null).map(({ name }) => name)
  }

  beforeEach(async () => {
    database = await kind.create()
  })
  afterEach(async () => {
    await database.drop()
  })

  it('applies every step, once, and lists them', async () => {
    expect(await applied()).to.deep.equal([])
    expect(await migrate('--dry-run')).to.deep.equal({ pending: names })
    expect(await applied()).to.deep.equal([])
    expect(await migrate()).to.deep.equal({ applied: names })
    expect(await applied()).to.deep.equal(names)
    expect(await migrate()).to.deep.equal({ applied: [] })
  })

  it('stops at the step that is named', async () => {
    const [first = ''] = names
    expect(await migrate('--to', first)).to.deep.equal({ applied: [first] })
    expect(await applied()).to.deep.equal([first])
  })

  it('refuses a step that does not exist, and changes nothing', async () => {
    const { code, err } = await runCli(['migrate', '--to', 'nonsense'], { env: { DATABASE_URL: database.url } })
    expect(code).to.equal(2)
    expect(err).to.include('nonsense')
    expect(await applied()).to.deep.equal([])
  })

  it('says the same to people', async () => {
    const env = { DATABASE_URL: database.url }
    const [first = ''] = names
    expect((await runCli(['migrate', '--status'], { env })).out).to.include(`${first}  pending`)
    expect((await runCli(['migrate', '--dry-run'], { env })).out).to.include(`would apply ${first}`)
    expect((await runCli(['migrate'], { env })).out).to.include(`applied ${first}`)
    expect((await runCli(['migrate'], { env })).out).to.equal('The tables are up to date.\n')
  })
})
