import { Threadmill } from 'threadmill'
import { support } from './agents.ts'
import { createApp } from './app.ts'

const mill = await Threadmill.connect({ agents: [support], migrate: true })
const app = await createApp(mill)
const server = app.listen(Number(process.env.PORT ?? 3000), () => process.stdout.write('listening\n'))

process.once('SIGTERM', () => {
  server.close()
  // Ends the event streams, which the server would wait for.
  void mill.close()
})
