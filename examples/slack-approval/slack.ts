import { createHmac, timingSafeEqual } from 'node:crypto'
import type { EventToolCall } from 'threadmill'
import * as z from 'zod'

const toleratedMs = 5 * 60_000

/** Whether Slack signed this body, and not long ago. https://docs.slack.dev/authentication/verifying-requests-from-slack */
export function isSignedBySlack(
  request: { readonly signature: string; readonly timestamp: string; readonly body: Buffer },
  secret: string,
  nowMs = Date.now(),
): boolean {
  const { signature, timestamp, body } = request
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(nowMs - Number(timestamp) * 1_000) > toleratedMs) return false
  const expected = Buffer.from(
    `v0=${createHmac('sha256', secret).update(`v0:${timestamp}:`).update(body).digest('hex')}`,
  )
  const given = Buffer.from(signature)
  return given.length === expected.length && timingSafeEqual(given, expected)
}

/** A click on a button, as Slack sends it: a form whose field `payload` is JSON. */
export const click = z.object({
  type: z.literal('block_actions'),
  user: z.object({ id: z.string() }),
  response_url: z.url(),
  actions: z.tuple([z.object({ action_id: z.enum(['approve', 'deny']), value: z.string() })]),
})

/** What the value of a button holds as JSON: the ids of its chat and of its call. */
export const subject = z.tuple([z.string(), z.string()])

/** The message that asks people to decide about a call. */
export function approvalMessage(chatId: string, { toolCallId, name, arguments: args }: EventToolCall): object {
  const text = `May I run ${name} with ${JSON.stringify(args)}?`
  const button = (action_id: 'approve' | 'deny', label: string) => ({
    type: 'button',
    action_id,
    text: { type: 'plain_text', text: label },
    value: JSON.stringify([chatId, toolCallId]),
  })
  const blocks = [
    { type: 'section', text: { type: 'plain_text', text } },
    { type: 'actions', elements: [button('approve', 'Approve'), button('deny', 'Deny')] },
  ]
  return { text, blocks }
}

/** Posts to a webhook or to a click's `response_url`. */
export async function post(url: string, message: object): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(message) })
  if (!response.ok) throw new Error(`Slack answered with ${response.status}`)
}
