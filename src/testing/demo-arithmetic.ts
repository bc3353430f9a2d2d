/** A piece of arithmetic found in a text. */
export interface FoundExpression {
  /** Where it begins in the text. */
  readonly index: number
  /** In digits and the operators + - * / % ^ with single blanks, such as `(2 + 3) * 4`. */
  readonly expression: string
}

type Token =
  | { readonly kind: 'number' | 'operator' | 'open' | 'close'; readonly index: number; readonly text: string }
  | { readonly kind: 'other'; readonly index: number; readonly text: string }

const small = 'zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen'
const numberWords = new Map<string, string>([
  ...`${small} seventeen eighteen nineteen twenty`.split(' ').map((word, at) => [word, String(at)] as const),
  ...'thirty forty fifty sixty seventy eighty ninety hundred'
    .split(' ')
    .map((word, at) => [word, String(30 + at * 10)] as const),
])

const operators = new Map<string, string>([
  ...['+', '-', '*', '/', '%', '^'].map((sign) => [sign, sign] as const),
  ...(['×', '·', 'x', 'times', 'multiplied by'] as const).map((sign) => [sign, '*'] as const),
  ...(['÷', 'divided by', 'over'] as const).map((sign) => [sign, '/'] as const),
  ...(['−', '–', 'minus'] as const).map((sign) => [sign, '-'] as const),
  ['**', '^'],
  ['to the power of', '^'],
  ['plus', '+'],
  ['modulo', '%'],
  ['mod', '%'],
])

// Dates, clock times and versions look like arithmetic without blanks, and are none.
const notArithmetic = /\d+(?:\.\d+){2,}|\d+:\d+(?::\d+)?|\d{1,4}([/-])\d{1,2}\1\d{1,4}/y
const number = /(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+/y
const operator =
  /\*\*|[-+*/%^×÷·−–]|x(?=\s*[\d(.])|(?:times|multiplied\s+by|divided\s+by|over|plus|minus|modulo|mod|to\s+the\s+power\s+of)(?![a-z])/iy
const word = /[\p{L}_][\p{L}\d_'’]*/uy

/** Every piece of arithmetic in a text, longest first at each place: two numbers at least and an operator between. */
export function findArithmetic(text: string): FoundExpression[] {
  const tokens = tokenize(text)
  const found: FoundExpression[] = []
  for (let at = 0; at < tokens.length; ) {
    const read = new Reader(tokens, at)
    const expression = read.chain()
    const index = tokens[at]?.index ?? 0
    if (expression !== null && read.operations > 0) {
      found.push({ index, expression })
      at = read.at
    } else {
      at++
    }
  }
  return found
}

function tokenize(text: string): Token[] {
  const tokens: Token[] = []
  const take = (pattern: RegExp, index: number): string | null => {
    pattern.lastIndex = index
    return pattern.exec(text)?.[0] ?? null
  }
  for (let index = 0; index < text.length; ) {
    const token = nextToken(text, index, take)
    if (token === null) {
      index++
      continue
    }
    tokens.push(token)
    index += token.text.length
  }
  return tokens.map(normalized)
}

function nextToken(text: string, index: number, take: (p: RegExp, i: number) => string | null): Token | null {
  const char = text.charAt(index)
  if (/\s/.test(char)) return null
  const odd = take(notArithmetic, index)
  if (odd !== null) return { kind: 'other', index, text: odd }
  const digits = take(number, index)
  if (digits !== null) return { kind: 'number', index, text: digits }
  const sign = take(operator, index)
  if (sign !== null) return { kind: 'operator', index, text: sign }
  if (char === '(') return { kind: 'open', index, text: char }
  if (char === ')') return { kind: 'close', index, text: char }
  const letters = take(word, index)
  if (letters === null) return { kind: 'other', index, text: char }
  return { kind: numberWords.has(letters.toLowerCase()) ? 'number' : 'other', index, text: letters }
}

function normalized(token: Token): Token {
  const plain = token.text.toLowerCase().replace(/\s+/g, ' ')
  if (token.kind === 'operator') return { ...token, text: operators.get(plain) ?? plain }
  if (token.kind === 'number') return { ...token, text: numberWords.get(plain) ?? plain.replaceAll(',', '') }
  return token
}

/** Reads a chain of terms; whatever can't be part of it is left unread. */
class Reader {
  operations = 0
  at: number
  readonly #tokens: readonly Token[]

  constructor(tokens: readonly Token[], at: number) {
    this.#tokens = tokens
    this.at = at
  }

  chain(): string | null {
    let read = this.#term()
    while (read !== null && this.#kind() === 'operator') {
      const before = this.at
      const sign = this.#next()
      const term = this.#term()
      if (term === null) {
        this.at = before // "5 + apples": the 5 stands alone
        return read
      }
      read = `${read} ${sign} ${term}`
      this.operations++
    }
    return read
  }

  #term(): string | null {
    if (this.#kind() === 'number') return this.#next()
    if (this.#kind() === 'operator' && this.#tokens[this.at]?.text === '-') return this.#negative()
    if (this.#kind() !== 'open') return null
    const { at, operations } = this
    this.at++
    const inner = this.chain()
    if (inner !== null && this.#kind() === 'close') {
      this.at++
      return `(${inner})`
    }
    this.at = at
    this.operations = operations
    return null
  }

  #negative(): string | null {
    const [sign, digits] = [this.#tokens[this.at], this.#tokens[this.at + 1]]
    if (digits?.kind !== 'number' || digits.index !== (sign?.index ?? 0) + 1) return null
    this.at += 2
    return `-${digits.text}`
  }

  #kind(): Token['kind'] | undefined {
    return this.#tokens[this.at]?.kind
  }

  #next(): string {
    return this.#tokens[this.at++]?.text ?? ''
  }
}
