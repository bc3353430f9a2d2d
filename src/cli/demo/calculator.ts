import { Big } from 'big.js'
import * as z from 'zod'
import { defineTool, ToolError } from '../../index.ts'

const divisionDigits = 15
const largestExponent = 1_000
const longest = 200

/** A constructor of our own: its precision is no one else's. */
const Decimal = Big()
Decimal.DP = divisionDigits

type Operator = '+' | '-' | '*' | '/' | '%' | '^'

/**
 * The value of an arithmetic expression with + - * / % ^ and brackets, exact but for divisions, which have 15 decimals.
 * @throws {ToolError} for what is no such expression, a division by zero, or a power that is not a whole number.
 */
export function calculate(expression: string): string {
  if (expression.length > longest) throw new ToolError(`The expression is longer than ${longest} characters.`)
  const value = new Reader(tokensOf(expression)).read()
  return value.toString()
}

function tokensOf(expression: string): string[] {
  const tokens = expression.match(/\d+(?:\.\d+)?|\.\d+|\*\*|[-+*/%^()]|\S/g) ?? []
  return tokens.map((token) => (token === '**' ? '^' : token))
}

/** Recursive descent: a sum of products of powers. */
class Reader {
  readonly #tokens: readonly string[]
  #at = 0

  constructor(tokens: readonly string[]) {
    this.#tokens = tokens
  }

  read(): Big {
    const value = this.#chain(['+', '-'], () => this.#product())
    if (this.#at < this.#tokens.length) throw this.#unexpected()
    return value
  }

  #product(): Big {
    return this.#chain(['*', '/', '%'], () => this.#signed())
  }

  #chain(operators: readonly Operator[], operand: () => Big): Big {
    let value = operand()
    for (let next = this.#take(operators); next !== null; next = this.#take(operators)) {
      value = applied(next, value, operand())
    }
    return value
  }

  /** A sign binds looser than a power: -2 ^ 2 is -4. */
  #signed(): Big {
    if (this.#take(['-']) !== null) return this.#signed().neg()
    if (this.#take(['+']) !== null) return this.#signed()
    const base = this.#operand()
    return this.#take(['^']) === null ? base : applied('^', base, this.#signed())
  }

  #operand(): Big {
    const token = this.#tokens[this.#at]
    if (token === '(') {
      this.#at++
      const value = this.#chain(['+', '-'], () => this.#product())
      if (this.#tokens[this.#at] !== ')') throw this.#unexpected()
      this.#at++
      return value
    }
    if (token === undefined || !/\d/.test(token)) throw this.#unexpected()
    this.#at++
    return new Decimal(token)
  }

  #take<Wanted extends Operator>(operators: readonly Wanted[]): Wanted | null {
    const found = operators.find((operator) => operator === this.#tokens[this.#at])
    if (found === undefined) return null
    this.#at++
    return found
  }

  #unexpected(): ToolError {
    const token = this.#tokens[this.#at]
    const where = token === undefined ? 'it ends too early' : `${JSON.stringify(token)} does not belong there`
    return new ToolError(`This is not arithmetic that I can do: ${where}. I know + - * / % ^ and brackets.`)
  }
}

function applied(operator: Operator, left: Big, right: Big): Big {
  switch (operator) {
    case '+':
      return left.plus(right)
    case '-':
      return left.minus(right)
    case '*':
      return left.times(right)
    case '/':
      return left.div(divisor(right))
    case '%':
      return left.mod(divisor(right))
    case '^':
      return power(left, right)
    default:
      return operator satisfies never
  }
}

function divisor(value: Big): Big {
  if (value.eq(0)) throw new ToolError('I can not divide by zero.')
  return value
}

function power(base: Big, exponent: Big): Big {
  if (!exponent.mod(1).eq(0) || exponent.abs().gt(largestExponent)) {
    throw new ToolError(`I can only raise to whole powers from -${largestExponent} to ${largestExponent}.`)
  }
  if (base.eq(0) && exponent.lt(0)) return divisor(base)
  return base.pow(exponent.toNumber())
}

/** Does arithmetic, without handing text to a JavaScript engine. */
export const calculator = defineTool({
  name: 'calculator',
  description: 'Calculates an arithmetic expression exactly. Knows + - * / % ^ and brackets, and nothing else.',
  parameters: z.object({ expression: z.string().min(1).describe('for example (2 + 3) * 4') }),
  execute: ({ expression }) => calculate(expression),
})
