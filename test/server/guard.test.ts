import { expect } from 'chai'
import { isLoopback, isSamePassword, refusedAct, refusedHost } from '../../src/server/guard.ts'

describe('The guard of the board', () => {
  for (const [what, method, headers, writable, status] of [
    ['a look at a read-only board', 'GET', {}, false, null],
    [
      'a look from another site, which its browser keeps from reading',
      'GET',
      { 'sec-fetch-site': 'cross-site' },
      true,
      null,
    ],
    ['an act on a read-only board', 'PUT', { 'sec-fetch-site': 'same-origin' }, false, 405],
    ['an act of its own page', 'PUT', { 'sec-fetch-site': 'same-origin', host: 'b', origin: 'http://b' }, true, null],
    ['an act of another site', 'POST', { 'sec-fetch-site': 'cross-site', host: 'b' }, true, 403],
    ['an act of a neighbour under the same domain', 'POST', { 'sec-fetch-site': 'same-site', host: 'b' }, true, 403],
    ['an act of another site in an old browser', 'POST', { origin: 'http://evil', host: 'b:1' }, true, 403],
    ['an act of a page without an origin', 'POST', { origin: 'null', host: 'b:1' }, true, 403],
    ['an act of its own page in an old browser', 'POST', { origin: 'http://b:1', host: 'b:1' }, true, null],
    ['an act of a program', 'DELETE', { host: 'b:1' }, true, null],
  ] as const) {
    it(`${status === null ? 'lets through' : `answers ${status} to`} ${what}`, () => {
      expect(refusedAct({ method, headers }, writable)?.status ?? null).to.equal(status)
    })
  }

  it('knows the addresses of this machine', () => {
    expect(['127.0.0.1', 'localhost', '::1', '[::1]', '127.8.9.1'].filter((host) => !isLoopback(host))).to.deep.equal(
      [],
    )
    expect(
      ['0.0.0.0', '::', '10.0.0.1', 'localhost.evil.example', '127.0.0.1.evil.example'].filter(isLoopback),
    ).to.deep.equal([])
  })

  it('answers to no other name where there is no password', () => {
    expect(refusedHost({ host: 'localhost:3030' })).to.equal(null)
    expect(refusedHost({ host: '[::1]:3030' })).to.equal(null)
    expect(refusedHost({ host: 'rebound.example:3030' })?.status).to.equal(403)
    expect(refusedHost({})?.status).to.equal(403)
  })

  it('compares passwords whole', () => {
    expect(isSamePassword('pässword', 'pässword')).to.equal(true)
    expect(isSamePassword('pässwor', 'pässword')).to.equal(false)
    expect(isSamePassword('', 'pässword')).to.equal(false)
  })
})
