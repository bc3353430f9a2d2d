import { expect } from 'chai'
import { DataTypes, Model, Op, type Sequelize } from 'sequelize'
import * as z from 'zod'
import {
  ArgumentError,
  ConfigurationError,
  type ConnectOptions,
  defineAgent,
  defineTool,
  NotMigratedError,
  ReadOnlyModelError,
  type Threadmill,
} from '../src/index.ts'
import { text, toolCalls } from '../src/testing/index.ts'
import { rejectionOf } from './chat/support/watching.ts'
import { onEachDatabase } from './support/databases.ts'
import { useBench } from './support/mills.ts'

declare module '../models/extension.ts' {
  interface ChatExtension {
    team?: string | null
    label?: { name: string } | null
  }
  interface MessageExtension {
    rating?: number | null
  }
  interface ToolCallExtension {
    audited?: string | null
  }
}

onEachDatabase("The application's own columns", (kind) => {
  const bench = useBench(kind)
  let mill: Threadmill
  let Label: ReturnType<typeof defineLabel>

  const extend: ConnectOptions['extend'] = {
    Chat: {
      attributes: { team: DataTypes.STRING(20), labelId: { type: DataTypes.INTEGER, field: 'label' } },
      scopes: { red: { where: { team: 'red' } }, of: (team: string) => ({ where: { team } }) },
      associate(Chat) {
        Label = defineLabel(Chat.sequelize as Sequelize)
        Chat.belongsTo(Label, { as: 'label', foreignKey: 'labelId', constraints: false })
      },
    },
    Message: { attributes: { rating: DataTypes.INTEGER } },
    ToolCall: {
      attributes: { audited: DataTypes.STRING(20) },
      scopes: { audited: { where: { audited: { [Op.ne]: null } } } },
    },
  }

  before(async () => {
    const first = await bench.connect()
    const migration = first.sequelize.getQueryInterface()
    await migration.addColumn('threadmill_chats', 'team', { type: DataTypes.STRING(20) })
    await migration.addColumn('threadmill_chats', 'label', { type: DataTypes.INTEGER })
    await migration.addColumn('threadmill_messages', 'rating', { type: DataTypes.INTEGER, defaultValue: 3 })
    await migration.addColumn('threadmill_tool_calls', 'audited', { type: DataTypes.STRING(20) })
    await migration.createTable('labels', { id: { type: DataTypes.INTEGER, primaryKey: true }, name: DataTypes.STRING })
    await first.close()
  })
  beforeEach(async () => {
    mill = await bench.connect({ extend })
  })

  it('are read and written through the models, and outlive a turn', async () => {
    await bench.script([text('Yes.')])
    mill = await bench.connect({ extend })
    const { Chat, Message } = mill.models
    const chat = await mill.chats.create()
    await Chat.update({ team: 'red' }, { where: { id: chat.id } })
    await chat.withModel('other').ask('Are you there?')
    const record = await Chat.findByPk(chat.id, { rejectOnEmpty: true })
    expect(record.team).to.equal('red')
    const messages = await Message.findAll({ where: { chatId: chat.id } })
    expect(messages.map(({ rating }) => rating)).to.deep.equal([3, 3])
    const again = mill.chats.from(record)
    expect((await again.messages()).map(({ content }) => content)).to.deep.equal(['Are you there?', 'Yes.'])
    await again.askLater('And now?')
    expect((await record.reload()).team).to.equal('red')
  })

  it('can be searched by scopes, and joined by associations', async () => {
    const { Chat } = mill.models
    const red = await mill.chats.create()
    const blue = await mill.chats.create()
    await Label.create({ id: 1, name: 'urgent' })
    await Chat.update({ team: 'red' }, { where: { id: red.id } })
    await mill.sequelize.query('UPDATE threadmill_chats SET label = 1 WHERE id = $id', { bind: { id: red.id } })
    await Chat.update({ team: 'blue' }, { where: { id: blue.id } })
    const found = await Chat.scope('red').findAll({ where: { id: [red.id, blue.id] }, include: ['label', 'messages'] })
    expect(found.map(({ id, label }) => [id, label?.name])).to.deep.equal([[red.id, 'urgent']])
    expect(await Chat.scope({ method: ['of', 'blue'] }).count({ where: { id: [red.id, blue.id] } })).to.equal(1)
  })

  it('of tool calls can be searched by scopes, and outlive the call, though the model is read only', async () => {
    await bench.script([toolCalls([{ name: 'look', arguments: {} }]), text('Yes.')])
    const look = defineTool({
      name: 'look',
      description: 'Looks.',
      parameters: z.object({}),
      execute: () => 'seen',
    })
    const agent = defineAgent({ name: 'watcher', tools: [look] })
    mill = await bench.connect({ extend, agents: [agent] })
    const chat = await mill.chats.create({ agent })
    await chat.askLater('Look')
    await chat.generate()
    const { ToolCall } = mill.models
    await mill.sequelize.query('UPDATE threadmill_tool_calls SET audited = $who WHERE chat_id = $chat', {
      bind: { who: 'ann', chat: chat.id },
    })
    expect((await chat.complete())?.content).to.equal('Yes.')
    const [found, ...more] = await ToolCall.scope('audited').findAll({ where: { chatId: chat.id } })
    expect([found?.audited, found?.name, more.length]).to.deep.equal(['ann', 'look', 0])
    expect(await rejectionOf(ToolCall.update({ audited: 'eve' }, { where: { chatId: chat.id } }))).to.be.instanceOf(
      ReadOnlyModelError,
    )
  })

  it('may not be named as ours are', async () => {
    const wrong: NonNullable<ConnectOptions['extend']>[] = [
      { Chat: { attributes: { owner: DataTypes.STRING } } },
      { Chat: { attributes: { mine: { type: DataTypes.STRING, field: 'claimed_by' } } } },
      { Message: { attributes: { save: DataTypes.STRING } } },
      { ToolCall: { attributes: { running: DataTypes.BOOLEAN } } },
      { Chat: { attributes: { messages: DataTypes.STRING } } },
      { Usage: { attributes: { key: { type: DataTypes.INTEGER, primaryKey: true } } } },
      { QueuedMessage: { scopes: { defaultScope: { where: { steer: true } } } } },
      { Chat: { associate: (Chat, { Message }) => void Chat.hasMany(Message, { as: 'messages' }) } },
    ]
    for (const clash of wrong) {
      const error = await rejectionOf(bench.connect({ extend: clash }))
      expect(error, JSON.stringify(clash)).to.be.instanceOf(ConfigurationError)
      expect(error).to.have.property('message').that.includes('extend')
    }
  })

  it('are asked for at the start: a release that comes before its migration is refused by name (E148)', async () => {
    const early: ConnectOptions['extend'] = {
      Chat: { attributes: { team: DataTypes.STRING(20), plan: DataTypes.STRING(20) } },
      Message: {
        attributes: {
          rated: { type: DataTypes.INTEGER, field: 'rated_by' },
          shown: DataTypes.VIRTUAL(DataTypes.STRING),
        },
      },
    }
    const error = await rejectionOf(bench.connect({ extend: early }))
    expect(error).to.be.instanceOf(NotMigratedError)
    expect(error)
      .to.have.property('message')
      .that.includes('threadmill_chats.plan, threadmill_messages.rated_by.')
      .and.includes('migration')
  })

  it('make no chat of a row that was loaded in part', async () => {
    const chat = await mill.chats.create()
    const part = await mill.models.Chat.findByPk(chat.id, { attributes: ['id', 'team'], rejectOnEmpty: true })
    expect(() => mill.chats.from(part)).to.throw(ArgumentError, 'settings')
  })
})

onEachDatabase('Two sets of tables in one database and one Redis', (kind) => {
  const bench = useBench(kind)

  it('never see, wake or run the chats of the other', async () => {
    const model = await bench.script(() => text('Yes.'))
    const one = await bench.connect({ tablePrefix: 'one_', migrate: true })
    const two = await bench.connect({ tablePrefix: 'two_', migrate: true })
    const pool = two.startWorkers({ complete: 1, runTools: 0 })
    await pool.ready()
    const first = await one.chats.create()
    const second = await two.chats.create()
    await first.askLater('one?', { enqueue: true })
    await second.askLater('two?', { enqueue: true })
    for await (const event of second.events({ after: '0' })) if (event.type === 'run.finished') break
    expect(await first.messages()).to.have.length(1)
    expect(await two.models.Chat.findByPk(first.id)).to.equal(null)
    const own = one.startWorkers({ complete: 1, runTools: 0 })
    for await (const event of first.events({ after: '0' })) if (event.type === 'run.finished') break
    expect(model.requests).to.have.length(2)
    await Promise.all([pool.close(), own.close()])
  })
})

function defineLabel(sequelize: Sequelize) {
  class Label extends Model<{ id: number; name: string }> {}
  return Label.init(
    { id: { type: DataTypes.INTEGER, primaryKey: true }, name: { type: DataTypes.STRING, allowNull: false } },
    { sequelize, tableName: 'labels', timestamps: false },
  )
}
