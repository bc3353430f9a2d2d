import { EventEmitter } from 'node:events'
import { expect } from 'chai'
import { hearLeaving } from '../../../src/cli/worker/leaving.ts'
import { until } from '../../support/until.ts'

describe('What ends a worker', () => {
  function hear() {
    const source = new EventEmitter()
    const exits: number[] = []
    const late: unknown[] = []
    const leaving = hearLeaving(
      source,
      (code) => exits.push(code),
      (error) => late.push(error),
    )
    return { source, exits, late, leaving }
  }

  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    it(`is ${signal}`, async () => {
      const { source, exits, leaving } = hear()
      expect(leaving.now()).to.equal(null)
      source.emit(signal)
      expect(await leaving.reason).to.deep.equal({ kind: 'signal', signal })
      expect(leaving.now()).to.deep.equal({ kind: 'signal', signal })
      expect(exits).to.deep.equal([])
    })
  }

  it('is a worker that is stuck, unless something else was first, and a signal can still end it at once (E132)', async () => {
    const { source, exits, leaving } = hear()
    leaving.stuck('complete')
    leaving.stuck('compact')
    expect(await leaving.reason).to.deep.equal({ kind: 'stuck', queue: 'complete' })
    await until('the signal counts', () => {
      source.emit('SIGTERM')
      return exits.length > 0
    })
    expect(exits).to.deep.equal([143])
    const later = hear()
    later.source.emit('SIGTERM')
    later.leaving.stuck('complete')
    expect(await later.leaving.reason).to.deep.equal({ kind: 'signal', signal: 'SIGTERM' })
  })

  it('is at once with a second signal, but not when one arrives twice in the same moment', async () => {
    const { source, exits } = hear()
    source.emit('SIGINT')
    source.emit('SIGINT')
    expect(exits).to.deep.equal([])
    await until('the second signal counts', () => {
      source.emit('SIGINT')
      return exits.length > 0
    })
    source.emit('SIGTERM')
    expect(exits).to.deep.equal([130, 143])
  })

  it('is an error that nobody caught; later ones are only told of', async () => {
    const { source, late, leaving } = hear()
    const [first, second] = [new Error('first'), new Error('second')]
    source.emit('unhandledRejection', first)
    source.emit('uncaughtException', second)
    expect(await leaving.reason).to.deep.equal({ kind: 'error', error: first })
    expect(late).to.deep.equal([second])
  })

  it('is heard no more after stop', () => {
    const { source, leaving } = hear()
    leaving.stop()
    expect(source.eventNames()).to.deep.equal([])
  })
})
