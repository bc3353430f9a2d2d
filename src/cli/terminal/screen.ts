import type { ChatEvent, EventAttachment, EventToolCall, Message } from '../../index.ts'

const longestDetail = 200

/** What the conversation is written to. */
export interface Output {
  readonly isTTY?: boolean | undefined
  write(text: string): unknown
  hasColors?(): boolean
}

/** Writes a conversation as it happens: what the model says as plain text, everything else as short lines that begin with a dot. */
export class Screen {
  readonly #output: Output
  readonly #colours: boolean
  #atLineStart = true
  /** The answer that is being written. */
  #messageId: string | null = null
  #shown = ''
  /** Messages of which all was written. */
  readonly #finished = new Set<string>()

  constructor(output: Output) {
    this.#output = output
    this.#colours = output.isTTY === true && output.hasColors?.() === true
  }

  /** A short line about what happens. */
  line(text: string): void {
    this.#newLine()
    this.#write(`${this.#dim(`· ${visible(text)}`)}\n`)
  }

  /** Lines as they are. */
  paragraph(text: string): void {
    this.#newLine()
    this.#write(`${visible(text)}\n`)
  }

  /** A call that a person has to decide about. */
  card(call: EventToolCall): void {
    const lines = [call.name, ...Object.entries(call.arguments).map(([name, value]) => `  ${name}: ${detail(value)}`)]
    this.frame('waits for your approval', [...lines, `call ${call.toolCallId}`])
  }

  /** Lines that belong together and are for somebody to act on. */
  frame(title: string, lines: readonly string[]): void {
    this.#newLine()
    const body = lines.map((text) => `│ ${visible(text)}`)
    this.#write([this.#bold(`┌─ ${visible(title)}`), ...body, '└─', ''].join('\n'))
  }

  /** One event; those that say nothing to a person are left out. */
  show(event: ChatEvent): void {
    if (event.type === 'text.delta') {
      this.#text(event.messageId, event.text)
      return
    }
    if (event.type === 'message.finished') {
      this.answer(event.messageId, event.text)
      return
    }
    // What was written of an answer that is not stored yet is void: it comes again.
    if (event.type === 'resync') this.#messageId = null
    const text = lineOf(event)
    if (text !== null) this.line(text)
  }

  /** A stored answer: whatever of it was not written yet. */
  answer(messageId: string, text: string | null): void {
    if (this.#finished.has(messageId)) return
    this.#finished.add(messageId)
    const whole = text ?? ''
    const shown = this.#messageId === messageId ? this.#shown : ''
    // Live text can have holes when Redis was away; what is stored has none.
    if (whole.startsWith(shown)) this.#text(messageId, whole.slice(shown.length))
    else this.paragraph(whole)
    this.#newLine()
  }

  /** What a stored transcript says beyond what was written. */
  answers(messages: readonly Message[]): void {
    for (const message of messages) if (message.role === 'assistant') this.answer(message.id, message.content)
  }

  /** Counts stored messages as written. */
  skip(messages: readonly Message[]): void {
    for (const message of messages) this.#finished.add(message.id)
  }

  /** Forgets that a line was begun: the person at the keyboard ended it. */
  typed(): void {
    this.#atLineStart = true
  }

  /** Ends a line that was begun, before something else is written to the terminal. */
  endLine(): void {
    this.#newLine()
  }

  #text(messageId: string, text: string): void {
    if (this.#messageId !== messageId) {
      this.#newLine()
      this.#messageId = messageId
      this.#shown = ''
    }
    this.#shown += text
    this.#write(visible(text))
  }

  #newLine(): void {
    if (!this.#atLineStart) this.#write('\n')
  }

  #write(text: string): void {
    if (text === '') return
    this.#output.write(text)
    this.#atLineStart = text.endsWith('\n')
  }

  #dim(text: string): string {
    return this.#colours ? `\u001b[2m${text}\u001b[22m` : text
  }

  #bold(text: string): string {
    return this.#colours ? `\u001b[1m${text}\u001b[22m` : text
  }
}

/** Models and files can hold anything, terminal commands included: without their control characters they are only text. */
function visible(text: string): string {
  return text.replace(/[^\P{Cc}\n\t]/gu, '')
}

/** A value on one line, cut where it is long. */
function detail(value: unknown): string {
  const text = (typeof value === 'string' ? value : JSON.stringify(value)).replace(/\s+/g, ' ').trim()
  return text.length > longestDetail ? `${text.slice(0, longestDetail)}…` : text
}

/** What the line about an event says; null for events without one. */
function lineOf(event: ChatEvent): string | null {
  switch (event.type) {
    case 'attempt.restarted':
      return 'the answer broke off and starts anew'
    case 'resync':
      return 'live events were lost; what is stored comes once more'
    case 'run.started':
      return 'run started'
    case 'tool_call.requested':
      return `tool ${event.toolCall.name} ${detail(event.toolCall.arguments)}`
    case 'tool.progress':
      return `progress ${event.message ?? `${event.value ?? 0} of ${event.total ?? '?'}`}`
    case 'sub_chat.started':
      return `agent ${event.agent} works on it, in chat ${event.subChatId}`
    case 'transferred':
      return `agent ${event.agent} goes on`
    case 'tool.result':
      return `${event.outcome} ${event.name}: ${detail(event.content)}${event.attachments.map(fileOf).join('')}`
    case 'input.requested':
      return `${event.name} asks: ${event.message}`
    case 'input.answered':
      return event.declined ? 'the question was declined' : 'the question was answered'
    case 'approval.decided':
      return `${event.approval} ${event.toolCall.name}`
    case 'queued':
      return `queued for ${event.steer ? 'this turn' : 'the next turn'}: ${detail(event.content ?? '')}`
    case 'unqueued':
      return 'taken out of the queue'
    case 'transcript.cut':
      return `asked again, without ${event.removed.length} messages`
    case 'usage':
      return usage(event)
    case 'run.waiting':
      return 'run parked: the chat waits, and holds nothing'
    case 'run.cancelled':
      return 'stopped'
    case 'run.finished':
      return 'run finished'
    case 'run.failed':
      if (event.retryInMs === null) return 'run failed'
      return `run failed, again in ${Math.ceil(event.retryInMs / 1000)} s: ${event.failure.message}`
    default:
      return null
  }
}

function fileOf({ filename, byteSize }: EventAttachment): string {
  return ` [${filename}, ${byteSize} bytes]`
}

function usage({ inputTokens, outputTokens, cost }: Extract<ChatEvent, { type: 'usage' }>): string {
  const price = cost === null ? '' : `, $${cost}`
  return `usage ${inputTokens ?? '?'} tokens in, ${outputTokens ?? '?'} out${price}`
}
