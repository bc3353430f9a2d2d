import { expect } from 'chai'
import fc from 'fast-check'
import type { TranscriptMessage } from '../../models/rows.ts'
import { planCompaction } from '../../src/loop/compaction-plan.ts'
import { requestMessages } from '../../src/loop/request.ts'
import { abandonedCalls, currentMessages, openCalls } from '../../src/loop/transcript.ts'
import { renderRequest } from '../../src/providers/chat-completions/render.ts'
import { findFault } from '../../src/testing/check-request.ts'
import type { WireMessage } from '../../src/testing/wire.ts'
import { answered, asks, message, open, result, says, transcriptOf, user } from './support.ts'

/** The transcript as it is once the summary of a plan is stored at its end; null where there is no plan. */
function summarised(transcript: readonly TranscriptMessage[], keep: number): TranscriptMessage[] | null {
  const plan = planCompaction(transcript, keep)
  if (plan === null) return null
  const position = (transcript.at(-1)?.position ?? -1) + 1
  const summary = message('assistant', { id: `summary-${position}`, content: 'SUMMARY', summaryThrough: plan.through })
  return [...transcript, { ...summary, position }]
}

/** The request as it goes out. */
function wire(transcript: readonly TranscriptMessage[], through?: number): WireMessage[] {
  const messages = requestMessages(transcript, { instructions: 'INSTRUCTIONS', ownInstructions: null }, through)
  return renderRequest({ model: 'm', messages, tools: [], streaming: false }).messages as WireMessage[]
}

/** What is sent, in short. */
const spell = (messages: readonly WireMessage[]) =>
  messages
    .map(({ role, content }) => (role === 'user' && `${content}`.includes('SUMMARY') ? 'summary' : role))
    .join(' ')

describe('What a summary stands for', () => {
  const rounds = transcriptOf(
    user(),
    asks(answered('c1')),
    result('c1'),
    asks(answered('c2'), answered('c3')),
    result('c2'),
    result('c3'),
    says('done'),
    user(),
  )

  for (let keep = 1; keep <= 7; keep++) {
    it(`leaves a request that can be sent, with the last ${keep} kept (B61, M38)`, () => {
      const after = summarised(rounds, keep)
      expect(after).not.to.equal(null)
      const sent = wire(after ?? [])
      expect(findFault(sent)).to.equal(null)
      expect(spell(sent)).to.match(/^system summary .*user$/)
      expect(currentMessages(after ?? []).length).to.be.at.least(keep)
    })
  }

  it('keeps a round with its results whole where the count would part it (B61, M38)', () => {
    const kept = (keep: number) => spell(wire(summarised(rounds, keep) ?? []))
    expect(kept(3)).to.equal('system summary assistant tool tool assistant user')
    expect(kept(4)).to.equal(kept(3))
    expect(kept(5)).to.equal(kept(3))
    expect(kept(6)).to.equal('system summary assistant tool assistant tool tool assistant user')
  })

  it('keeps an open round, whose other call still runs (B61)', () => {
    const transcript = transcriptOf(user(), says('done'), user(), asks(answered('c4'), open('c5')), result('c4'))
    const after = summarised(transcript, 0) ?? []
    expect(currentMessages(after).map(({ role }) => role)).to.eql(['user', 'assistant', 'tool'])
    expect(openCalls(after).map(({ id }) => id)).to.eql(['c5'])
  })

  it('never reaches the last unanswered user message', () => {
    const transcript = transcriptOf(user(), says('done'), user('unanswered'))
    expect(planCompaction(transcript, 0)?.through).to.equal(1)
    expect(planCompaction(transcriptOf(user('unanswered')), 0)).to.equal(null)
  })

  it('is everything once the turn is answered', () => {
    expect(planCompaction(transcriptOf(user(), says('done')), 0)?.through).to.equal(1)
  })

  it('is nothing where nothing came since the last summary', () => {
    const once = summarised(transcriptOf(user(), says('done')), 0) ?? []
    expect(planCompaction(once, 0)).to.equal(null)
    expect(planCompaction([], 0)).to.equal(null)
    expect(planCompaction(transcriptOf(message('system')), 0)).to.equal(null)
  })

  it('is what the request for it holds, results that came late included', () => {
    const transcript = transcriptOf(user('first'), asks(answered('late')), user('second'), result('late'), says('done'))
    const plan = planCompaction(transcript, 3)
    expect(plan?.through).to.equal(1)
    const sent = wire(transcript, plan?.through)
    expect(spell(sent)).to.equal('system user assistant tool')
    expect(sent.at(-1)?.content).to.equal('result of late')
  })

  it('takes nothing from a request but what it stands for, for any transcript and any number kept (M38, B61)', () => {
    let made = 0
    const round = fc.integer({ min: 1, max: 3 }).chain((calls) =>
      fc.record({
        calls: fc.constant(calls),
        answered: fc.integer({ min: 0, max: calls }),
        text: fc.boolean(),
      }),
    )
    const piece = fc.oneof(
      fc.constant('user' as const),
      fc.constant('answer' as const),
      fc.constant('system' as const),
      fc.constant('blank' as const),
      round,
    )
    const messagesOf = (of: typeof piece extends fc.Arbitrary<infer T> ? T : never): TranscriptMessage[] => {
      if (of === 'user') return [user()]
      if (of === 'answer') return [says('an answer')]
      if (of === 'system') return [message('system', { content: 'a rule' })]
      if (of === 'blank') return [says(' ')]
      const ids = Array.from({ length: of.calls }, () => `call-${made++}`)
      const calls = ids.map((id, at) => (at < of.answered ? answered(id) : open(id)))
      const content = of.text ? 'with text' : null
      return [message('assistant', { content, toolCalls: calls }), ...ids.slice(0, of.answered).map(result)]
    }
    const property = fc.property(
      fc.array(piece, { maxLength: 14 }),
      fc.array(fc.nat({ max: 12 }), { minLength: 1, maxLength: 3 }),
      (pieces, keeps) => {
        let transcript = transcriptOf(...pieces.flatMap(messagesOf))
        for (const keep of keeps) {
          const before = currentMessages(transcript)
          const openBefore = openCalls(transcript).map(({ id }) => id)
          const plan = planCompaction(transcript, keep)
          if (plan === null) continue
          // The order to summarise comes last, so a round may not be open at its end.
          expect(findFault([...wire(transcript, plan.through), { role: 'user', content: 'Summarise' }])).to.equal(null)
          const after = summarised(transcript, keep) ?? []
          const kept = currentMessages(after)
          expect(kept).to.eql(before.slice(before.length - kept.length))
          expect(kept.length).to.be.at.least(Math.min(keep, before.length - 1))
          expect(kept[0]?.role).not.to.equal('tool')
          expect(openCalls(after).map(({ id }) => id)).to.eql(openBefore)
          const sent = wire(after)
          expect(findFault(sent)).to.equal(null)
          expect(spell(sent)).to.match(/^system (system )*summary\b/)
          expect(spell(sent).match(/summary/g)).to.have.length(1)
          // What is read back from the rows says the same as what the run had.
          const read = after.filter(
            (one) =>
              one.role === 'system' ||
              one.summaryThrough === plan.through ||
              (one.position > plan.through && one.summaryThrough === null),
          )
          expect(wire(read)).to.eql(sent)
          expect(openCalls(read).map(({ id }) => id)).to.eql(openBefore)
          expect(abandonedCalls(kept).every(({ resultId }) => resultId === null)).to.equal(true)
          transcript = after
        }
      },
    )
    fc.assert(property, { numRuns: 500 })
  })
})
