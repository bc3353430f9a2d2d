import { expectTypeOf } from 'expect-type'
import type { Chat, ChatEvent, EventReader, LiveEvent } from 'threadmill'

declare const chat: Chat
declare const reader: EventReader

expectTypeOf(chat.events({ after: '0' })).toEqualTypeOf<EventReader>()
expectTypeOf(reader[Symbol.asyncIterator]().next).returns.resolves.toMatchTypeOf<IteratorResult<ChatEvent>>()
expectTypeOf<ChatEvent['type']>().toEqualTypeOf<LiveEvent['type']>()
expectTypeOf<ChatEvent>().toHaveProperty('id').toEqualTypeOf<string>()

/** The union is closed and each member is told by its type: a viewer that leaves one out does not compile. */
export function describe(event: ChatEvent): string {
  switch (event.type) {
    case 'run.started':
      return `${event.turn.toFixed()} ${event.claimToken.toFixed()}`
    case 'message.started':
      return event.model
    case 'text.delta':
    case 'thinking.delta':
      return event.text
    case 'attempt.restarted':
      return event.replaces
    case 'message.finished':
      expectTypeOf(event.text).toEqualTypeOf<string | null>()
      return event.messageId
    case 'tool_call.requested':
    case 'approval.requested':
      return event.toolCall.name
    case 'approval.decided':
      expectTypeOf(event.approval).toEqualTypeOf<'approved' | 'remembered' | 'denied'>()
      return event.approval
    case 'input.requested':
      return event.fields.map(({ name }) => name).join()
    case 'input.answered':
      return event.key
    case 'tool.progress':
      return event.message ?? ''
    case 'sub_chat.started':
      return event.subChatId
    case 'transferred':
      return event.agent
    case 'tool.result':
      return event.content
    case 'queued':
      return event.content ?? ''
    case 'dequeued':
    case 'unqueued':
      return event.queuedId
    case 'transcript.cut':
      return event.removed.join()
    case 'run.waiting':
      return event.toolCalls.map(({ name }) => name).join()
    case 'run.finished':
      return event.messageId ?? ''
    case 'resync':
    case 'run.cancelled':
      return event.chatId
    case 'run.failed':
      expectTypeOf(event.retryInMs).toEqualTypeOf<number | null>()
      return event.failure.code
    case 'usage':
      return event.cost ?? ''
    default:
      return event satisfies never
  }
}

export function withoutOne(event: LiveEvent): string {
  switch (event.type) {
    case 'run.started':
      return ''
    default:
      // @ts-expect-error: all the other types are left
      return event satisfies never
  }
}
