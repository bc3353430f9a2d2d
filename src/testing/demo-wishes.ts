import { findArithmetic } from './demo-arithmetic.ts'

/** Something that a user's message asks for and a demo tool can do. */
export interface Wish {
  /** Where the message asks for it. */
  readonly index: number
  readonly tool: 'clock' | 'calculator' | 'read_file' | 'refund_order'
  readonly arguments: Readonly<Record<string, string>>
}

/** Everything that a message asks for, in the order of the text and without repeats; empty if it is nothing we know. */
export function readWishes(message: string): Wish[] {
  const files = findFiles(message)
  const refunds = findRefunds(message)
  // File names and order numbers have digits and dashes that are no arithmetic.
  const rest = blank(blank(message, files), refunds)
  const sums = findArithmetic(rest).map(({ index, expression }) => wish(index, 'calculator', { expression }))
  const wishes = [...files, ...refunds, ...findCities(message), ...sums].sort((a, b) => a.index - b.index)
  const seen = new Set<string>()
  return wishes.filter((one) => {
    const key = JSON.stringify([one.tool, one.arguments])
    return !seen.has(key) && seen.add(key)
  })
}

interface Found extends Wish {
  readonly length: number
}

const wish = (index: number, tool: Wish['tool'], args: Wish['arguments']): Wish => ({ index, tool, arguments: args })

const found = (match: { index: number; text: string }, tool: Wish['tool'], args: Wish['arguments']): Found => ({
  ...wish(match.index, tool, args),
  length: match.text.length,
})

/** The text with blanks where something was found, so that places in it stay the same. */
const blank = (text: string, taken: readonly Found[]): string =>
  taken.reduce(
    (left, { index, length }) => left.slice(0, index) + ' '.repeat(length) + left.slice(index + length),
    text,
  )

// --- files -----------------------------------------------------------------------------------------------------------

const file = /["'`]([^"'`\n]+\.[a-z][a-z0-9]{0,7})["'`]|(?<![\w./~:-])([\w./~-]*[\w-]\.[a-z][a-z0-9]{0,7})(?![\w/])/giu
const readVerb =
  /\b(?:read|open|show|print|cat|display|view|summari[sz]e|contents?\s+of|inside|look\s+(?:at|in(?:to)?)|what(?:'s|’s|s|\s+is|\s+are|\s+does|\s+do)|tell\s+me)\b/i

/** Files that come after a word of reading in the same sentence. */
function findFiles(message: string): Found[] {
  const verb = readVerb.exec(message)
  if (verb === null) return []
  return [...message.matchAll(file)].flatMap((match) => {
    const path = match[1] ?? match[2]
    if (path === undefined || match.index < verb.index) return []
    return [found({ index: match.index, text: match[0] }, 'read_file', { path })]
  })
}

// --- refunds ---------------------------------------------------------------------------------------------------------

const refundWord = /\brefund(?:s|ed|ing)?\b/i
const refused = /\b(?:don['’]?t|do\s+not|never|without|no)\s+(?:\w+\s+)?refund|\bnot\s+(?:be\s+)?refund/i
const orders =
  /\borders?\s*(?:number|no\.?|nr\.?)?\s*((?:#?\s?\d+(?:\s*(?:,|and|&|or)\s*(?:order\s*)?(?=#?\s?\d))?)+)/giu
const hashed = /#\s?\d+/g

function findRefunds(message: string): Found[] {
  if (!refundWord.test(message) || refused.test(message)) return []
  const named = [...message.matchAll(orders)]
  const matches = named.length > 0 ? named : [...message.matchAll(hashed)]
  return matches.flatMap((match) =>
    [...match[0].matchAll(/\d+/g)].map((digits) =>
      found({ index: match.index + digits.index, text: digits[0] }, 'refund_order', { order: digits[0] }),
    ),
  )
}

// --- the time of a city ----------------------------------------------------------------------------------------------

const timeIn =
  /\btime\b(?:\s+(?:is\s+it|it\s+is|do\s+they\s+have|(?:right\s+)?now|currently|over))*\s+(?:in|at|for|of)\s+/giu
const inCity = /\bin\s+([^?.!,;:\n]+?),?\s+what(?:'s|’s|\s+is)?\s+(?:the\s+)?(?:current\s+|local\s+)?time\b/giu
const cityTime = /\b[Ww]hat(?:'s|’s|\s+is)\s+(?:the\s+)?(?:current\s+)?((?:\p{Lu}[\p{L}'’-]+\s+)+)time\b/gu

// Words that end a city's name, or show that what begins here is none.
const stop = new Set(
  (
    'a an the my our your this that these it now right today please then and or also but what whats when where how is ' +
    'are if while read refund show tell give calculate compute say thanks thank plus minus times at for minutes hours ' +
    'seconds advance general case order time which who two three half about'
  ).split(' '),
)

function findCities(message: string): Wish[] {
  const after = [...message.matchAll(timeIn)].flatMap((match) => cityList(message, match.index + match[0].length))
  const before = [...message.matchAll(inCity), ...message.matchAll(cityTime)].flatMap((match) => {
    const name = match[1] ?? ''
    return cityList(name, 0).map((city) => ({ ...city, index: match.index }))
  })
  return [...after, ...before].map(({ index, city }) => wish(index, 'clock', { city }))
}

/** "Tokyo, Paris and in new york": the names from there on, as long as they look like names. */
function cityList(text: string, start: number): { index: number; city: string }[] {
  const cities: { index: number; city: string }[] = []
  let at = start
  let certain = true // after "in" a name needs no capital, after a bare "and" it does
  for (;;) {
    const name = cityAt(text, at)
    if (name === '' || (!certain && !/^\p{Lu}/u.test(name))) return cities
    cities.push({ index: at, city: capitalized(name) })
    const joint = /^\s*(?:,\s*and|,|and|&)\s+(in\s+)?/i.exec(text.slice(at + name.length))
    if (joint === null) return cities
    at += name.length + joint[0].length
    certain = joint[1] !== undefined
  }
}

/** The words of one city's name that begin at a place, at most four. */
function cityAt(text: string, at: number): string {
  const run = /^(?:St\.\s+)?[\p{L}][\p{L}'’-]*(?:\s+[\p{L}][\p{L}'’-]*){0,3}/u.exec(text.slice(at))?.[0] ?? ''
  const words = run.split(/(\s+)/)
  const end = words.findIndex((word) => stop.has(word.toLowerCase().replace(/['’]/g, '')))
  return (end < 0 ? run : words.slice(0, end).join('')).trim()
}

const capitalized = (name: string): string =>
  name === name.toLowerCase()
    ? name.replace(/(?<![\p{L}'’])\p{L}+/gu, (word) =>
        /^(?:de|da|do|of|la|le|del)$/.test(word) ? word : word.charAt(0).toUpperCase() + word.slice(1),
      )
    : name
