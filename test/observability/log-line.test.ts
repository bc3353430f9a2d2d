import { expect } from 'chai'
import type { Observation } from '../../src/index.ts'
import { instruments } from '../../src/observability/instruments.ts'
import { logLine, logTo } from '../../src/observability/log-line.ts'
import { modelEnded, runEnded, someError, toolEnded } from './observations.ts'

describe('The line of an observation', () => {
  it('names the event, keeps the facts, rounds times, and leaves out what is null', () => {
    expect(logLine(runEnded)).to.deep.equal({
      level: 'info',
      text: 'A run ended',
      fields: {
        event: 'run.ended',
        chatId: 'chat',
        turn: 2,
        claimToken: 7,
        outcome: 'answered',
        agent: 'support',
        moves: 3,
        durationMs: 2_000,
      },
    })
  })

  const levels: readonly (readonly [string, Observation, string | undefined])[] = [
    ['a run that failed', { ...runEnded, outcome: 'failed' }, 'error'],
    ['a run that comes back by itself', { ...runEnded, outcome: 'retry' }, 'warn'],
    ['a run that lost its chat', { ...runEnded, outcome: 'claim-lost' }, 'warn'],
    ['a run without anything to do', { ...runEnded, outcome: 'idle' }, 'debug'],
    ['an attempt that succeeded', modelEnded, 'debug'],
    ['an attempt that failed', { ...modelEnded, status: 'failed', error: someError }, 'warn'],
    ['a tool that returned', toolEnded, 'debug'],
    ['a tool that was cut short', { ...toolEnded, outcome: 'interrupted' }, 'warn'],
    ['a sweep that rang', { type: 'sweep.ended', rung: 2, durationMs: 1 }, 'debug'],
    ['a sweep that found nothing', { type: 'sweep.ended', rung: 0, durationMs: 1 }, undefined],
    ['a thread that died', { type: 'renewal.restarted' }, 'error'],
  ]
  for (const [what, observation, level] of levels) {
    it(`is ${level ?? 'none'} for ${what}`, () => expect(logLine(observation)?.level).to.equal(level))
  }

  it('of a notice is its own sentence', () => {
    expect(logLine({ type: 'notice', message: 'An embedded Redis is used' })?.text).to.equal(
      'An embedded Redis is used',
    )
  })
})

describe('Those who are told', () => {
  it('can neither stop what they are told of nor each other, whether they throw or reject', async () => {
    const seen: string[] = []
    const { observe } = instruments({
      listeners: [
        () => {
          throw new Error('mine')
        },
        () => Promise.reject(new Error('mine too')),
        ({ type }) => seen.push(type),
      ],
    })
    observe(runEnded)
    // A rejection that nobody handled would end the test run.
    await new Promise((resolve) => setImmediate(resolve))
    expect(seen).to.deep.equal(['run.ended'])
  })

  it('get lines by level from the methods of a logger, called on it', () => {
    const lines: string[] = []
    class Lines {
      #add = (level: string, text: string) => lines.push(`${level} ${text}`)
      debug(_facts: object, text: string) {
        this.#add('debug', text)
      }
      info(_facts: object, text: string) {
        this.#add('info', text)
      }
      warn(_facts: object, text: string) {
        this.#add('warn', text)
      }
      error(_facts: object, text: string) {
        this.#add('error', text)
      }
    }
    const log = logTo(new Lines())
    log(runEnded)
    log({ ...runEnded, outcome: 'failed' })
    expect(lines).to.deep.equal(['info A run ended', 'error A run ended'])
  })

  it('tell the same trouble once in ten seconds, however often a client tries', () => {
    const lines: string[] = []
    const add = (_facts: object, text: string) => lines.push(text)
    let now = 0
    const log = logTo({ debug: add, info: add, warn: add, error: add }, () => now)
    const trouble = (doing: string): Observation => ({ type: 'redis.trouble', doing, error: someError })
    for (now of [0, 100, 9_999]) log(trouble('ringing'))
    log(trouble('reading live events'))
    expect(lines).to.have.length(2)
    now = 10_000
    log(trouble('ringing'))
    expect(lines).to.have.length(3)
  })

  it('get content only when it was asked for, and cut', () => {
    const open = instruments({ listeners: [], observeContent: true })
    const closed = instruments({ listeners: [] })
    expect(open.content('x'.repeat(5_000))).to.have.length(2_000)
    expect([open.content(() => 'lazily'), open.content(null)]).to.deep.equal(['lazily', null])
    const dear = () => expect.fail('made for nobody')
    expect(closed.content(dear)).to.equal(null)
  })
})
