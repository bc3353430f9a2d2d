import express, { type Express } from 'express'
import { DataTypes, Op, UniqueConstraintError } from 'sequelize'
import { type Agent, type Chat, StateError, type Threadmill, ToolCallDecidedError } from 'threadmill'
import { approvalMessage, click, isSignedBySlack, post, subject } from './slack.ts'

export interface SlackOptions {
  readonly agent: Agent
  readonly webhookUrl: string
  readonly signingSecret: string
}

/** Takes tasks at `/tasks`, asks people in Slack about calls that need approval, and takes their clicks. */
export async function createApp(
  mill: Threadmill,
  { agent, webhookUrl, signingSecret }: SlackOptions,
): Promise<Express> {
  // What was taken once is not taken again, by whichever process. Rows older than the tolerated time can be deleted.
  const SlackRequest = mill.sequelize.define('SlackRequest', {
    signature: { type: DataTypes.STRING(80), primaryKey: true },
  })
  await SlackRequest.sync()

  /** Posts each call of the chat that waits for approval, until the turn is over. */
  async function watch(chat: Chat): Promise<void> {
    const posted = new Set<string>()
    for await (const event of chat.events()) {
      if (event.type === 'approval.requested' && !posted.has(event.toolCall.toolCallId)) {
        await post(webhookUrl, approvalMessage(chat.id, event.toolCall))
        posted.add(event.toolCall.toolCallId)
      }
      if (event.type === 'run.finished' || event.type === 'run.cancelled') return
      if (event.type === 'run.failed' && event.retryInMs === null) return
    }
  }
  const keepWatching = (chat: Chat) =>
    void watch(chat).catch((error: unknown) => process.stderr.write(`chat ${chat.id}: ${String(error)}\n`))

  // Chats of before a restart: their buttons are posted again, and decide once all the same.
  const unfinished = { [Op.or]: { parked: true, wantedAt: { [Op.ne]: null }, claimedBy: { [Op.ne]: null } } }
  for (const record of await mill.models.Chat.findAll({ where: { agent: agent.name, ...unfinished } })) {
    keepWatching(mill.chats.from(record))
  }

  const app = express()

  app.post('/tasks', express.text(), async (request, response) => {
    const chat = await mill.chats.create({ agent })
    await chat.askLater(String(request.body), { enqueue: true })
    keepWatching(chat)
    response.status(202).json({ id: chat.id })
  })

  // Raw, since the signature is one of bytes.
  app.post('/slack/interactions', express.raw({ type: () => true }), async (request, response) => {
    const signature = request.get('x-slack-signature') ?? ''
    const timestamp = request.get('x-slack-request-timestamp') ?? ''
    const body: Buffer = request.body
    const isGenuine = isSignedBySlack({ signature, timestamp, body }, signingSecret)
    if (!isGenuine || !(await isFirst(SlackRequest.create({ signature })))) return void response.status(401).end()
    const payload: unknown = JSON.parse(new URLSearchParams(body.toString()).get('payload') ?? '')
    const { user, response_url, actions } = click.parse(payload)
    const [chatId, callId] = subject.parse(JSON.parse(actions[0].value))
    const chat = await mill.chats.find(chatId)
    const verb = actions[0].action_id
    const answer = await chat[verb](callId, { ifUndecided: true }).then(
      // In place of the buttons, for everybody.
      () => ({ replace_original: true, text: `<@${user.id}> chose: ${verb}.` }),
      (error: unknown) => {
        if (!(error instanceof StateError)) throw error
        const text = error instanceof ToolCallDecidedError ? 'Somebody was quicker than you.' : error.message
        return { response_type: 'ephemeral', replace_original: false, text }
      },
    )
    // Slack waits 3 s for this.
    response.status(200).end()
    await post(response_url, answer)
  })

  return app
}

async function isFirst(row: Promise<unknown>): Promise<boolean> {
  try {
    await row
    return true
  } catch (error) {
    if (error instanceof UniqueConstraintError) return false
    throw error
  }
}
