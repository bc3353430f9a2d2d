import { type ConnectOptions, Threadmill } from '../../../src/index.ts'

// Writes a chat and a wish in a transaction, says so, and waits to be killed before it can commit.

const options = JSON.parse(process.env.THREADMILL_TEST_OPTIONS ?? '{}') as ConnectOptions
const mill = await Threadmill.connect(options)
await mill.transaction(async (transaction) => {
  const chat = await mill.chats.create({ owner: 'anna' }, { transaction })
  await chat.askLater('Are you there?', { transaction, enqueue: true })
  process.stdout.write('WRITTEN\n')
  await new Promise(() => process.stdin.resume())
})
