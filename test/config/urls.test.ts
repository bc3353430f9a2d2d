import { expect } from 'chai'
import { queuePrefix } from '../../config/queues.ts'
import { parseDatabaseUrl, parseRedisUrl, UrlProblem } from '../../config/urls.ts'

describe('database URLs', () => {
  it('name a server, with escapes undone and the usual port', () => {
    expect(parseDatabaseUrl('mysql://us%40er:p%2Fw@db.host/na%20me')).to.deep.equal({
      kind: 'mysql',
      host: 'db.host',
      port: 3306,
      user: 'us@er',
      password: 'p/w',
      database: 'na me',
      ssl: false,
    })
    expect(parseDatabaseUrl('mariadb://u@[::1]:80/d?ssl=true')).to.include({
      kind: 'mysql',
      host: '::1',
      port: 80,
      ssl: true,
    })
  })

  it('name a SQLite file, absolute or relative', () => {
    expect(parseDatabaseUrl('sqlite:///var/a%20b.db')).to.deep.equal({ kind: 'sqlite', storage: '/var/a b.db' })
    expect(parseDatabaseUrl('sqlite:/var/a.db')).to.deep.equal({ kind: 'sqlite', storage: '/var/a.db' })
    expect(parseDatabaseUrl('sqlite:data/a.db')).to.deep.equal({ kind: 'sqlite', storage: 'data/a.db' })
  })

  for (const url of [
    'postgres://h/d',
    'mysql://h',
    'mysql://h/d?pool=1',
    'mysql://u:%zz@h/d',
    'mysql:///d',
    'sqlite:',
    'sqlite://',
    'sqlite::memory:',
    'sqlite:file::memory:?cache=shared',
    'sqlite:a.db?mode=ro',
    'nonsense',
  ]) {
    it(`refuse ${url}`, () => {
      expect(parseDatabaseUrl(url)).to.be.instanceOf(UrlProblem)
    })
  }
})

describe('Redis URLs', () => {
  const nothing = { username: undefined, password: undefined, db: 0, master: undefined }
  const noSentinel = { sentinelUsername: undefined, sentinelPassword: undefined }

  it('name one server, plain or with TLS', () => {
    expect(parseRedisUrl('redis://localhost')).to.deep.equal({
      kind: 'single',
      nodes: [{ host: 'localhost', port: 6379 }],
      tls: false,
      ...nothing,
      ...noSentinel,
    })
    expect(parseRedisUrl('rediss://me:s%40cret@[::1]:7000/3')).to.deep.include({
      nodes: [{ host: '::1', port: 7000 }],
      tls: true,
      username: 'me',
      password: 's@cret',
      db: 3,
    })
    expect(parseRedisUrl('redis://:pa@ss@h')).to.deep.include({ password: 'pa@ss', username: undefined })
  })

  it('name sentinels and their master', () => {
    expect(
      parseRedisUrl(
        'redis+sentinel://user:pass@host1:26379,host2/mymaster?db=2&sentinelUsername=su&sentinelPassword=sp',
      ),
    ).to.deep.equal({
      kind: 'sentinel',
      nodes: [
        { host: 'host1', port: 26_379 },
        { host: 'host2', port: 26_379 },
      ],
      tls: false,
      username: 'user',
      password: 'pass',
      db: 2,
      master: 'mymaster',
      sentinelUsername: 'su',
      sentinelPassword: 'sp',
    })
  })

  it('name a cluster', () => {
    expect(parseRedisUrl('rediss+cluster://h1:1,h2:2')).to.deep.equal({
      kind: 'cluster',
      nodes: [
        { host: 'h1', port: 1 },
        { host: 'h2', port: 2 },
      ],
      tls: true,
      ...nothing,
      ...noSentinel,
    })
  })

  for (const url of [
    'http://h',
    'redis://',
    'redis://h1,h2',
    'redis://h:99999',
    'redis://h/x',
    'redis://h?db=1',
    'redis+sentinel://h',
    'redis+sentinel://h/m?db=x',
    'redis+sentinel://h/m?role=slave',
    'redis+cluster://h/2',
    'redis://:%zz@h',
  ]) {
    it(`refuse ${url}`, () => {
      expect(parseRedisUrl(url)).to.be.instanceOf(UrlProblem)
    })
  }

  it('decide the prefix of the queues: a hash tag on a cluster, so that a queue stays on one node', () => {
    expect(queuePrefix('mill', { isCluster: false })).to.equal('mill')
    expect(queuePrefix('mill', { isCluster: true })).to.equal('{mill}')
  })
})
