/** Where the rows are kept, read from a DATABASE_URL. */
export type DatabaseTarget =
  | {
      readonly kind: 'mysql'
      readonly host: string
      readonly port: number
      readonly user: string
      readonly password: string
      readonly database: string
      /** True asks for TLS with a certificate that this machine trusts; anything else is the driver's own option. */
      readonly ssl: boolean | string | object
      /** A local socket in place of host and port. */
      readonly socketPath?: string | undefined
    }
  /** `storage` is a path as it was written, absolute or relative to the working directory. */
  | { readonly kind: 'sqlite'; readonly storage: string }

/** One server of a Redis. */
export interface RedisNode {
  readonly host: string
  readonly port: number
}

/** Which Redis to use, read from a REDIS_URL. `nodes` are the server, the sentinels or the cluster's seeds. */
export interface RedisTarget {
  readonly kind: 'single' | 'sentinel' | 'cluster'
  readonly nodes: readonly [RedisNode, ...RedisNode[]]
  readonly tls: boolean
  readonly username: string | undefined
  readonly password: string | undefined
  /** The numbered database; always 0 for a cluster, which has only that one. */
  readonly db: number
  /** The name that the sentinels know the master by; only with sentinels. */
  readonly master: string | undefined
  /** The sentinels' own credentials, from `?sentinelUsername=` and `?sentinelPassword=`. */
  readonly sentinelUsername: string | undefined
  readonly sentinelPassword: string | undefined
}

/** What is wrong with a URL, in words that may be shown: the URL itself, which may hold a password, is never in it. */
export class UrlProblem {
  readonly reason: string
  constructor(reason: string) {
    this.reason = reason
  }
}

const problem = (reason: string) => new UrlProblem(reason)

function decoded(text: string): string | UrlProblem {
  try {
    return decodeURIComponent(text)
  } catch {
    return problem('holds a % that begins no escape: write a literal % as %25')
  }
}

/**
 * Reads a database URL: `mysql://user:password@host:3306/name[?ssl=true]`, the same with `mariadb:`, or `sqlite:path`
 * (`sqlite:///absolute/path`, `sqlite:relative/path`). Returns what is wrong with it instead of throwing.
 */
export function parseDatabaseUrl(text: string): DatabaseTarget | UrlProblem {
  if (text.startsWith('sqlite:')) return parseSqlite(text.slice('sqlite:'.length))
  if (!/^(mysql|mariadb):\/\//.test(text)) return problem('must begin with mysql://, mariadb:// or sqlite:')
  let url: URL
  try {
    url = new URL(text)
  } catch {
    return problem('is no URL: write mysql://user:password@host:3306/name, with special characters %-escaped')
  }
  const user = decoded(url.username)
  if (user instanceof UrlProblem) return user
  const password = decoded(url.password)
  if (password instanceof UrlProblem) return password
  const database = decoded(url.pathname.slice(1))
  if (database instanceof UrlProblem) return database
  if (url.hostname === '') return problem('names no host')
  if (database === '') return problem('names no database: end it with /name')
  let ssl = false
  for (const [key, value] of url.searchParams) {
    if (key !== 'ssl' || !/^(true|false)$/.test(value))
      return problem('has a parameter other than ssl=true or ssl=false')
    ssl = value === 'true'
  }
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const port = url.port === '' ? 3306 : Number(url.port)
  return { kind: 'mysql', host, port, user, password, database, ssl }
}

function parseSqlite(rest: string): DatabaseTarget | UrlProblem {
  const storage = decoded(rest.replace(/^\/\/(?=.)/, ''))
  if (storage instanceof UrlProblem) return storage
  if (storage === '' || storage === '//') return problem('names no file: write sqlite:path/to/file')
  if (storage.includes(':memory:')) {
    return problem(
      'asks for a database in memory, which Threadmill cannot use: a claim is renewed on a second connection, which would see another, empty database. Name a file',
    )
  }
  if (/[?#]/.test(rest) || storage.includes('\0'))
    return problem('has parameters after the file name; SQLite takes none here')
  return { kind: 'sqlite', storage }
}

const redisUrl = /^(rediss?)(?:\+(sentinel|cluster))?:\/\/(?:(.*)@)?([^@/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/

/**
 * Reads a Redis URL, in one of these forms; `rediss` instead of `redis` asks for TLS.
 *
 * - `redis://user:password@host:6379/0`
 * - `redis+sentinel://user:password@host1:26379,host2:26379/mymaster?db=0`, credentials being the master's; the
 *   sentinels' own go into `sentinelUsername` and `sentinelPassword`
 * - `redis+cluster://user:password@host1:6379,host2:6379`
 *
 * Returns what is wrong with it instead of throwing.
 */
export function parseRedisUrl(text: string): RedisTarget | UrlProblem {
  const match = redisUrl.exec(text)
  if (!match) {
    return problem(
      'must look like redis://host:6379/0, rediss://..., redis+sentinel://host:26379,host:26379/master or redis+cluster://host:6379,host:6379',
    )
  }
  const kind = (match[2] ?? 'single') as RedisTarget['kind']
  const nodes = parseNodes(match[4] ?? '', kind === 'sentinel' ? 26379 : 6379)
  if (nodes instanceof UrlProblem) return nodes
  if (kind === 'single' && nodes.length > 1)
    return problem('names several hosts: use redis+sentinel:// or redis+cluster://')
  const login = parseLogin(match[3])
  if (login instanceof UrlProblem) return login
  const path = decoded(match[5] ?? '')
  if (path instanceof UrlProblem) return path
  const query = parseQuery(kind, match[6] ?? '')
  if (query instanceof UrlProblem) return query
  if (kind === 'sentinel' && path === '') return problem('names no master: write redis+sentinel://host:26379/mymaster')
  if (kind === 'cluster' && path !== '' && path !== '0')
    return problem('names a database; a cluster has only database 0')
  const db = parseDb(kind === 'sentinel' ? (query.get('db') ?? '') : path)
  if (db instanceof UrlProblem) return db
  return {
    kind,
    nodes,
    tls: match[1] === 'rediss',
    ...login,
    db,
    master: kind === 'sentinel' ? path : undefined,
    sentinelUsername: query.get('sentinelUsername') ?? undefined,
    sentinelPassword: query.get('sentinelPassword') ?? undefined,
  }
}

function parseNodes(text: string, defaultPort: number): [RedisNode, ...RedisNode[]] | UrlProblem {
  const nodes: RedisNode[] = []
  for (const part of text.split(',')) {
    const match = /^(\[[0-9a-fA-F:.]+\]|[^:[\]\s]+)(?::(\d{1,5}))?$/.exec(part.trim())
    const port = Number(match?.[2] ?? defaultPort)
    if (!match || port < 1 || port > 65535) return problem('has a host that is not written as host:port')
    nodes.push({ host: (match[1] ?? '').replace(/^\[|\]$/g, ''), port })
  }
  const [first, ...others] = nodes
  return first ? [first, ...others] : problem('names no host')
}

function parseLogin(text: string | undefined): Pick<RedisTarget, 'username' | 'password'> | UrlProblem {
  if (!text) return { username: undefined, password: undefined }
  const colon = text.indexOf(':')
  const username = decoded(colon < 0 ? text : text.slice(0, colon))
  if (username instanceof UrlProblem) return username
  const password = decoded(colon < 0 ? '' : text.slice(colon + 1))
  if (password instanceof UrlProblem) return password
  return { username: username || undefined, password: password || undefined }
}

function parseQuery(kind: RedisTarget['kind'], text: string): URLSearchParams | UrlProblem {
  const query = new URLSearchParams(text)
  const allowed = kind === 'sentinel' ? ['db', 'sentinelUsername', 'sentinelPassword'] : []
  if ([...query.keys()].every((key) => allowed.includes(key))) return query
  return problem(
    allowed.length > 0 ? `has a parameter other than ${allowed.join(', ')}` : 'has parameters; this form takes none',
  )
}

function parseDb(text: string): number | UrlProblem {
  if (text === '') return 0
  return /^\d{1,5}$/.test(text) ? Number(text) : problem('names a database that is not a number')
}
