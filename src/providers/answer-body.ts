import { createParser } from 'eventsource-parser'

/** One server-sent event with data. */
export interface ServerEvent {
  readonly name: string | undefined
  readonly data: string
}

const MAX_HEAD_LENGTH = 2000
const EVENT_FIELD = /^(?::|(?:data|event|id|retry)(?::|$))/

/**
 * Decodes the body of a response, which is a stream of events or one document. The bytes decide, not the content type:
 * servers answer streaming requests with a JSON error, and label either as something else. Blank events and comments
 * are left out.
 */
export class AnswerBodyDecoder {
  readonly #utf8 = new TextDecoder()
  readonly #parser = createParser({ onEvent: ({ event, data }) => this.#queue(event, data) })
  #pending: ServerEvent[] = []
  #text = ''
  #isDocument: boolean | null = null
  #sawEvent = false
  #endedWithReturn = false

  /** Takes the next bytes and returns the events that they complete. */
  push(bytes: Uint8Array): ServerEvent[] {
    return this.#take(this.#utf8.decode(bytes, { stream: true }))
  }

  /** Takes the end of the body and returns a last event that lacks its blank line; it may be cut. */
  end(): ServerEvent[] {
    const rest = this.#take(this.#utf8.decode())
    return this.#isDocument ? rest : [...rest, ...this.#take('\n\n')]
  }

  /** The text of a body that is no stream of events, `''` for an empty one; null for a stream. Asked after the end. */
  document(): string | null {
    if (this.#isDocument) return this.#text
    if (this.#sawEvent) return null
    const strange = this.#text.split(/\r\n|\r|\n/).some((line) => line.trim() !== '' && !EVENT_FIELD.test(line))
    return strange || this.#text.trim() === '' ? this.#text.trim() : null
  }

  #take(text: string): ServerEvent[] {
    if (this.#isDocument === null) this.#isDocument = startsDocument(this.#text + text)
    if (this.#isDocument || this.#text.length < MAX_HEAD_LENGTH) this.#text += text
    if (!this.#isDocument) this.#parser.feed(this.#withLineFeeds(text))
    const events = this.#pending
    this.#pending = []
    return events
  }

  /** Every line ends with one line feed: the parser takes for ever over many that end with carriage returns. */
  #withLineFeeds(text: string): string {
    const rest = this.#endedWithReturn && text.startsWith('\n') ? text.slice(1) : text
    if (text !== '') this.#endedWithReturn = text.endsWith('\r')
    return rest.replaceAll('\r\n', '\n').replaceAll('\r', '\n')
  }

  #queue(name: string | undefined, data: string): void {
    this.#sawEvent = true
    if (data.trim() !== '') this.#pending.push({ name, data })
  }
}

/** Null while nothing but blanks has come. No event stream begins with a bracket. */
function startsDocument(text: string): boolean | null {
  const first = text.trimStart().at(0)
  return first === undefined ? null : first === '{' || first === '[' || first === '<'
}
