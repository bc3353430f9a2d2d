import fc from 'fast-check'

/** One thing that goes wrong with a body on its way; `at` and its likes are shares of its length. */
export type Mutation =
  | { readonly kind: 'byte'; readonly at: number; readonly byte: number }
  | { readonly kind: 'cut'; readonly at: number }
  | { readonly kind: 'drop' | 'double'; readonly at: number }
  | { readonly kind: 'swap'; readonly at: number; readonly with: number }
  | { readonly kind: 'value'; readonly at: number; readonly path: readonly number[]; readonly text: string }

/** JSON in place of a value: other types, numbers that are none, long and deep values, names that objects have by themselves. */
const values = [
  ...['null', 'true', '""', '"x"', '[]', '{}', '0', '-1', '0.5', '[null]', '{"a":[{}]}', '"\\ud83d"', '"\\u0000"'],
  ...[
    '1e308',
    '1e999',
    '-1e999',
    '9007199254740993',
    '2147483648',
    '[DONE]',
    '{"error":"x"}',
    '{"__proto__":{"id":1}}',
  ],
  ...['{"type":"thinking","thinking":[{"text":7}]}', '{"type":"text","text":{}}', '{"constructor":1,"toString":null}'],
  `"${'y'.repeat(3_000)}"`,
  `${'['.repeat(40)}${']'.repeat(40)}`,
  `${'{"a":'.repeat(3_000)}1${'}'.repeat(3_000)}`,
  `"${'```'} ${' '.repeat(2_000)}x"`,
  `[${'0,'.repeat(2_000)}0]`,
]

const share = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('byte'), at: share, byte: fc.nat(255) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('cut'), at: share }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('drop', 'double'), at: share }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('swap'), at: share, with: share }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('value'),
      at: share,
      path: fc.array(fc.nat(7), { maxLength: 7 }),
      text: fc.constantFrom(...values),
    }),
  },
)

export const mutations = fc.array(mutation, { minLength: 1, maxLength: 4 })

/** A body after all that went wrong with it. */
export function mutated(body: Uint8Array, all: readonly Mutation[]): Uint8Array {
  return all.reduce(mutate, body)
}

function mutate(body: Uint8Array, one: Mutation): Uint8Array {
  const at = Math.floor(one.at * body.length)
  switch (one.kind) {
    case 'byte':
      return body.length === 0 ? body : body.with(at, one.byte)
    case 'cut':
      return body.subarray(0, at)
    case 'drop':
    case 'double':
    case 'swap':
    case 'value':
      return Buffer.from(mutateEvents(Buffer.from(body).toString().split('\n\n'), one).join('\n\n'))
    default:
      return one satisfies never
  }
}

function mutateEvents(events: readonly string[], one: Exclude<Mutation, { kind: 'byte' | 'cut' }>): string[] {
  const place = (at: number) => Math.floor(at * events.length)
  const index = place(one.at)
  const event = events[index] ?? ''
  switch (one.kind) {
    case 'drop':
      return events.toSpliced(index, 1)
    case 'double':
      return events.toSpliced(index, 0, event)
    case 'swap':
      return events.with(index, events[place(one.with)] ?? '').with(place(one.with), event)
    case 'value':
      return events.with(index, withValue(event, one.path, one.text))
    default:
      return one satisfies never
  }
}

const mark = '\u0001here\u0001'

/** The event with the value at a path replaced; a path that ends early stands for what it has reached. */
function withValue(event: string, path: readonly number[], text: string): string {
  const [head, json] = event.startsWith('data: ') ? ['data: ', event.slice(6)] : ['', event]
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch {
    return head + text
  }
  return head + JSON.stringify(marked(value, path)).replace(JSON.stringify(mark), () => text)
}

function marked(value: unknown, [step, ...rest]: readonly number[]): unknown {
  const keys = typeof value === 'object' && value !== null ? Object.keys(value) : []
  const key = step === undefined ? undefined : keys[step % keys.length]
  if (key === undefined || typeof value !== 'object' || value === null) return mark
  const inner = marked((value as Record<string, unknown>)[key], rest)
  return Array.isArray(value) ? value.with(Number(key), inner) : { ...value, [key]: inner }
}
