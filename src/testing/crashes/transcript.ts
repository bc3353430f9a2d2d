import type { Message } from '../../chat/message.ts'

/** The messages of a chat, one line each, to read: `user: …`, `assistant calls refund {"order":"42"}`, `refund succeeded: …`. */
export function readable(messages: readonly Message[]): string[] {
  const calls = messages.flatMap(({ toolCalls }) => toolCalls)
  return messages.flatMap((message) => {
    if (message.role === 'tool') {
      const call = calls.find(({ resultId }) => resultId === message.id)
      return [`${call?.name ?? 'a call that is not there'} ${message.outcome}: ${oneLine(message.content)}`]
    }
    const asked = message.toolCalls.map(
      (call) => `${message.role} calls ${call.name} ${oneLine(JSON.stringify(call.arguments))}`,
    )
    const said =
      message.content === null || message.content === '' ? [] : [`${message.role}: ${oneLine(message.content)}`]
    return [...said, ...asked]
  })
}

const longest = 200

function oneLine(text: string | null): string {
  const line = (text ?? '').replace(/\s+/g, ' ').trim()
  return line.length <= longest ? line : `${line.slice(0, longest)}…`
}
