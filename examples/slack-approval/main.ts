import { Threadmill } from 'threadmill'
import { makeOps } from './agents.ts'
import { createApp } from './app.ts'
import { post } from './slack.ts'

const { SLACK_WEBHOOK_URL: webhookUrl = '', SLACK_SIGNING_SECRET: signingSecret = '', PORT = '3000' } = process.env
if (webhookUrl === '' || signingSecret === '') throw new Error('Set SLACK_WEBHOOK_URL and SLACK_SIGNING_SECRET')

const agent = makeOps((text) => post(webhookUrl, { text }))
// With a logger, since what onTurnEnd throws is only logged.
const mill = await Threadmill.connect({ agents: [agent], migrate: true, logger: console })
const app = await createApp(mill, { agent, webhookUrl, signingSecret })
mill.startWorkers()
const server = app.listen(Number(PORT))

process.once('SIGTERM', () => {
  server.close()
  void mill.close()
})
