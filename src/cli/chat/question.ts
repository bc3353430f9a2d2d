import type { Json } from '../../../models/rows.ts'
import type { InputField } from '../../../models/waiting.ts'

/** A question of a tool, as an event or a row tells it. */
export interface Question {
  readonly toolCallId: string
  /** The tool's name. */
  readonly name: string
  readonly key: string
  readonly message: string
  readonly fields: readonly InputField[]
}

/** What is asked, a line each. */
export function questionLines({ message, fields, key, toolCallId }: Question): string[] {
  return [...message.split('\n'), ...fields.map(fieldLine), `question ${key} of call ${toolCallId}`]
}

function fieldLine(field: InputField): string {
  const { name, type = 'string', choices, title, description } = field
  const facts = [type, ...(choices === undefined ? [] : [`one of ${choices.map(json).join(', ')}`]), needOf(field)]
  const about = [title, description].filter((text) => text !== undefined).join('. ')
  return `  ${name} (${facts.join(', ')})${about === '' ? '' : `: ${about.replace(/\s+/g, ' ')}`}`
}

function needOf({ default: otherwise, required }: InputField): string {
  if (otherwise !== undefined) return `default ${json(otherwise)}`
  return required === false ? 'optional' : 'required'
}

/** How it is answered, in one line. */
export function howToAnswer(question: Question): string {
  const example = json(Object.fromEntries(question.fields.map((field) => [field.name, exampleOf(field)])))
  const plain = takesText(question) ? 'the text alone or ' : ''
  return `${plain}/answer ${example} answers, /decline declines`
}

function exampleOf({ default: otherwise, choices, type }: InputField): Json {
  const [choice] = choices ?? []
  if (otherwise !== undefined || choice !== undefined) return otherwise ?? choice ?? null
  if (type === 'boolean') return true
  return type === 'number' || type === 'integer' ? 1 : '…'
}

/** Whether a text says all that is asked. */
export function takesText({ fields }: Question): boolean {
  return fields.length === 1 && (fields[0]?.type ?? 'string') === 'string'
}

export type ReadAnswer =
  | { readonly question: Question; readonly values: Readonly<Record<string, unknown>> }
  | { readonly problem: string }

/**
 * Reads what stands behind `/answer`: JSON or a text for the first question, or the key of one and then either. Whether the values
 * fit is for the chat to say.
 * @param questions those that are open, the oldest first.
 */
export function readAnswer(text: string, questions: readonly Question[]): ReadAnswer {
  const [first] = questions
  if (first === undefined) return { problem: 'no question waits for an answer' }
  const named = questions.find(({ key }) => text.startsWith(key) && /^\s+\S/.test(text.slice(key.length)))
  return named === undefined ? valuesOf(first, text) : valuesOf(named, text.slice(named.key.length).trim())
}

function valuesOf(question: Question, text: string): ReadAnswer {
  if (!text.startsWith('{')) {
    if (takesText(question)) return textAnswer(question, text)
    return { problem: `${question.name} asks for more than a text: ${howToAnswer(question)}` }
  }
  try {
    return { question, values: JSON.parse(text) as Record<string, unknown> }
  } catch (error) {
    return { problem: `that is no JSON: ${(error as Error).message}` }
  }
}

/** A text as the answer to a question that takes one. */
export function textAnswer(question: Question, text: string): ReadAnswer {
  const [field] = question.fields
  if (field === undefined) return { question, values: {} }
  return { question, values: { [field.name]: field.choices?.find((choice) => String(choice) === text) ?? text } }
}

function json(value: Json): string {
  return JSON.stringify(value)
}
