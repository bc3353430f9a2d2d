import { expect } from 'chai'
import { text } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { chatRow } from './support/rows.ts'

onEachDatabase('Settings that several processes store', (kind) => {
  const bench = useBench(kind)

  it('count together: each stores what it changed, and keeps what others did (E177)', async () => {
    await bench.script(text('Yes.'))
    const [mill, other] = [await bench.connect(), await bench.connect()]
    const ours = await mill.chats.create({ temperature: 0.5, citations: true })
    const theirs = await other.chats.find(ours.id)
    const stored = async () => (await chatRow(mill, ours)).settings

    await theirs.withTemperature(0.25).withMaxOutputTokens(100).save()
    await ours.withEndUser('ada').askLater('Are you there?')
    expect(await stored()).to.deep.equal({ temperature: 0.25, maxOutputTokens: 100, endUser: 'ada', citations: true })

    await theirs.withMaxOutputTokens(null).save()
    await ours.withEndUser('bob').queue('Hello?')
    expect(await stored()).to.deep.equal({ temperature: 0.25, endUser: 'bob', citations: true })

    await theirs.withTemperature(0.75).save()
    ours.withCitations(null)
    expect((await ours.render()).temperature).to.equal(0.75)
    await mill.jobs.complete.enqueue(ours)
    expect(await stored()).to.deep.equal({ temperature: 0.75, endUser: 'bob' })
  })

  it('are added to, also at the same moment: no instruction is lost (E177)', async () => {
    const mills = [await bench.connect(), await bench.connect(), await bench.connect()]
    const [mill] = mills
    const chat = await mill?.chats.create()
    const said: string[] = []
    const add = async (at: number, round: number) => {
      const mine = await mills[at]?.chats.find(chat?.id ?? '')
      said.push(`${round} of ${at}`)
      await mine?.withInstructions(`${round} of ${at}`, { append: true }).save()
    }
    for (let round = 0; round < 5; round++) await Promise.all(mills.map((_, at) => add(at, round)))
    const stored = (await chat?.messages())?.map(({ content }) => content)
    expect(stored).to.have.members(said)
  })

  it('or one object sets while a verb of its own stores others: the next verb stores them (E177)', async () => {
    let meanwhile = () => {}
    const onStatement = (sql: string) => {
      if (!/UPDATE .* SET .*settings/.test(sql)) return
      const act = meanwhile
      meanwhile = () => {}
      act()
    }
    const mill = await bench.connect({ observe: { onStatement } })
    const chat = await mill.chats.create()
    meanwhile = () => chat.withMaxOutputTokens(5).withTemperature(0.75).withInstructions('Later.', { append: true })
    await chat.withTemperature(0.5).withEndUser('ada').withInstructions('First.', { append: true }).save()
    expect((await chatRow(mill, chat)).settings).to.deep.equal({ temperature: 0.5, endUser: 'ada' })
    await chat.askLater('Hello?')
    expect((await chatRow(mill, chat)).settings).to.deep.equal({
      temperature: 0.75,
      endUser: 'ada',
      maxOutputTokens: 5,
    })
    expect((await chat.messages()).map(({ content }) => content)).to.deep.equal(['First.', 'Later.', 'Hello?'])

    const own = await mill.chats.create()
    meanwhile = () => own.withMaxOutputTokens(7)
    await mill.transaction(async (transaction) => {
      await own.withTemperature(0.5).askLater('Hello?', { transaction })
      await own.askLater('Again?', { transaction })
    })
    expect((await chatRow(mill, own)).settings).to.deep.equal({ temperature: 0.5, maxOutputTokens: 7 })
  })
})
