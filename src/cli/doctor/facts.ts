/** What a check comes to. */
export type Status = 'ok' | 'warn' | 'fail'

/** One check, as it is shown. */
export interface Finding {
  readonly name: string
  readonly status: Status
  readonly what: string
  /** What puts it right; null where nothing has to be. */
  readonly fix: string | null
}

/** What there is to know of this process. */
export interface ProcessFacts {
  readonly node: string
  readonly threadmill: string
  /** The libraries between Threadmill and the servers; null = it could not be found. */
  readonly drivers: Readonly<Record<string, string | null>>
}

/** Something was tried and can't be used: where, and why. */
export interface Unusable {
  readonly kind: 'unusable'
  readonly place: string
  readonly why: string
  /** `missing`: it is no server's fault, there is nothing yet, or no setting names it. */
  readonly missing: boolean
}

export interface DatabaseFacts {
  readonly kind: 'database'
  readonly dialect: 'mysql' | 'sqlite'
  readonly place: string
  readonly isEmbedded: boolean
  readonly version: string
  readonly clock: Clock
  /** Variables of the session; empty on SQLite. */
  readonly session: Readonly<Record<string, string>>
  /** The collation of the table of messages; null on SQLite, or while there is none. */
  readonly tableCollation: string | null
  /** Steps that the tables lack, and steps that this version does not know. */
  readonly migrations: { readonly pending: readonly string[]; readonly unknown: readonly string[] }
  /** The prefixes of all sets of tables in this database. */
  readonly prefixes: readonly string[]
}

export interface RedisFacts {
  readonly kind: 'redis'
  readonly place: string
  /** What serves it, where it is embedded. */
  readonly embedded: string | null
  /** Null where the server does not tell. */
  readonly version: string | null
  readonly policy: string | null
  /** Whether it writes what it holds to disk; null where it does not tell. */
  readonly persists: boolean | null
  readonly clock: Clock
}

/** How far a server's clock is ahead of this process's, and how exactly that is known. */
export interface Clock {
  readonly aheadMs: number
  readonly withinMs: number
}

export interface ModelFacts {
  readonly place: string
  /** The HTTP status; null when no answer came. */
  readonly status: number | null
  readonly why: string | null
  /** The model that is configured; null = none. */
  readonly wanted: string | null
  /** The models that the endpoint lists; null = it gave no list. */
  readonly listed: readonly string[] | null
}

/** What is configured, without secrets. */
export interface SetUp {
  readonly tablePrefix: string
  readonly redisPrefix: string
}
