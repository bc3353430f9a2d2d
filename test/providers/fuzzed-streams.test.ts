import { expect } from 'chai'
import fc from 'fast-check'
import { ThreadmillError } from '../../src/errors.ts'
import { AnswerBudget } from '../../src/providers/answer-budget.ts'
import { type AnswerAssembler, readAnswerStream } from '../../src/providers/answer-stream.ts'
import { AttemptLimits } from '../../src/providers/attempt-limits.ts'
import { AnswerReader } from '../../src/providers/chat-completions/read.ts'
import { isNestedTooDeep } from '../../src/providers/nesting.ts'
import type { Answer } from '../../src/providers/provider.ts'
import { attemptOptions } from './scripted-server.ts'
import { sentBodies } from './support/bodies.ts'
import { mutated, mutations } from './support/mutations.ts'

const RUNS = process.env.THREADMILL_FULL === '1' ? 50_000 : 3_000
const MAX_BYTES = 1_000_000
const LONGEST_MS = 5_000

const bodies = sentBodies()
const broken = fc.record({
  body: fc.nat(bodies.length - 1),
  mutations,
  pieces: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.constant(100_000)),
  streaming: fc.boolean(),
})
type Broken = typeof broken extends fc.Arbitrary<infer Drawn> ? Drawn : never

describe('Any stream of a model that was damaged on its way', () => {
  it(`ends, soon, in an answer or in an error of Threadmill (${RUNS} cases) (E103)`, async function () {
    this.timeout(900_000)
    const ends = new Map<string, number>()
    await fc.assert(
      fc.asyncProperty(broken, async (drawn) => {
        const begun = performance.now()
        const end = await endOf(drawn, new AnswerReader())
        expect(performance.now() - begun, 'time in ms').to.be.lessThan(LONGEST_MS)
        const word = end instanceof ThreadmillError ? end.code : 'an answer'
        ends.set(word, (ends.get(word) ?? 0) + 1)
        if (end instanceof ThreadmillError) expect(end.message).to.be.a('string').that.is.not.empty
        else checkAnswer(end)
      }),
      { numRuns: RUNS },
    )
    const often = [...ends].filter(([, count]) => count > RUNS / 200).map(([word]) => word)
    expect(often, JSON.stringify(Object.fromEntries(ends))).to.include.members([
      'an answer',
      'provider.malformed_answer',
      'provider.stream_cut',
      'provider.server_error',
    ])
  })

  it('shows a reader that falls over a list in place of an object', async () => {
    class Trusting extends AnswerReader {
      override push(chunk: unknown) {
        const { choices } = chunk as { choices: [{ delta: object }] }
        return Object.keys(choices[0].delta).length < 0 ? [] : super.push(chunk)
      }
    }
    const property = fc.asyncProperty(broken, async (drawn) => void (await endOf(drawn, new Trusting())))
    expect((await fc.check(property, { numRuns: 500 })).failed).to.equal(true)
  })
})

/** The answer, or the error of Threadmill that it ended with; whatever else is thrown comes out. */
async function endOf(drawn: Broken, reader: AnswerAssembler): Promise<Answer | ThreadmillError> {
  const bytes = mutated(bodies[drawn.body] ?? new Uint8Array(), drawn.mutations)
  const attempt = attemptOptions({ maxAnswerBytes: MAX_BYTES })
  const limits = new AttemptLimits(attempt.signal, attempt.timeoutMs)
  const budget = new AnswerBudget('m-test', MAX_BYTES)
  const options = { streaming: drawn.streaming, attempt, limits, budget, context: {} }
  try {
    return await readAnswerStream(inPieces(bytes, drawn.pieces), reader, options)
  } catch (error) {
    if (error instanceof ThreadmillError) return error
    throw error
  } finally {
    limits.stop()
  }
}

function inPieces(bytes: Uint8Array, size: number): ReadableStream<Uint8Array> {
  let at = 0
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close()
      controller.enqueue(bytes.subarray(at, at + size))
      at += size
    },
  })
}

/** What the loop and the rows rely on. */
function checkAnswer(answer: Answer): void {
  const { text, thinking, toolCalls, finishReason, usage, rawReasoning, citations } = answer
  expect(text).to.be.a('string')
  for (const word of [thinking, finishReason]) if (word !== null) expect(word).to.be.a('string').that.is.not.empty
  for (const json of [rawReasoning, citations]) expect(isNestedTooDeep(json)).to.equal(false)
  for (const count of Object.values(usage ?? {})) if (count !== null) expect(count).to.be.within(0, 2 ** 31 - 1)
  for (const call of toolCalls) {
    expect(call.name).to.be.a('string').that.is.not.empty
    expect(call.argumentsText).to.be.a('string')
    if (call.arguments === null) continue
    expect(call.arguments).to.be.an('object')
    expect(isNestedTooDeep(call.arguments)).to.equal(false)
  }
  expect(JSON.parse(JSON.stringify(answer))).to.be.an('object')
}
