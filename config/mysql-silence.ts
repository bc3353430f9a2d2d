import type { Socket } from 'node:net'
import { silentLooks } from './silence.ts'
import type { DatabaseTarget } from './urls.ts'

/** The part of a mysql2 connection that is used here. */
interface MysqlConnection {
  readonly stream: Socket
  readonly threadId: number
  query(...input: unknown[]): unknown
  execute(...input: unknown[]): unknown
  ping(done: (error: Error | null) => void): unknown
  once(event: 'end', listener: () => void): unknown
}

/** The session of a connection, as the server itself names it. */
interface Session {
  readonly id: number
  readonly host: string
}

interface Watched {
  readonly connection: MysqlConnection
  readonly session: Session
  unanswered: number
  bytesRead: number
  looks: number
}

type Target = DatabaseTarget & { readonly kind: 'mysql' }

/** What a server says of a session: it does nothing, is not there, works on a statement, or this server can't tell. */
type SessionState = 'idle' | 'gone' | 'working' | 'not known'

const lookEveryMs = 1_000
/** So many looks in a row have to find a connection silent before its server is asked. */
const looksAllowed = 5
const askLimitMs = 3_000

/**
 * Watches connections to MySQL or MariaDB for one that is open and answers nothing, such as one that a router forgot: a statement on
 * it would wait for ever, and its session would keep its locks. A statement may take long, so the server is asked over a new connection
 * what the session does. Only where it does nothing, though an answer is owed, the session is killed and the connection broken off;
 * whoever waits gets the error of a lost connection. It sends nothing as long as all is well.
 */
export class MysqlSilence {
  readonly #target: Target
  readonly #watched = new Set<Watched>()
  #timer: NodeJS.Timeout | null = null
  #isAsking = false

  constructor(target: Target) {
    this.#target = target
  }

  /** From now on, until it ends. Not one whose session can't be named, as behind a proxy that shares sessions out. */
  async watch(input: unknown): Promise<void> {
    const connection = input as MysqlConnection
    const session = await sessionOf(connection)
    if (session === null || session.id !== connection.threadId) return
    const watched: Watched = { connection, session, unanswered: 0, bytesRead: 0, looks: 0 }
    listenTo(watched)
    this.#watched.add(watched)
    connection.stream.once('close', () => this.#watched.delete(watched))
    this.#timer ??= setInterval(() => this.#look(), lookEveryMs).unref()
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
    this.#watched.clear()
  }

  #look(): void {
    for (const watched of this.#watched) {
      const { bytesRead, destroyed } = watched.connection.stream
      const isAnswered = bytesRead !== watched.bytesRead
      watched.bytesRead = bytesRead
      watched.looks = silentLooks(watched.looks, { isReady: !destroyed, isOwed: watched.unanswered > 0, isAnswered })
    }
    const silent = [...this.#watched].filter(({ looks }) => looks >= looksAllowed)
    if (silent.length > 0 && !this.#isAsking) void this.#ask(silent)
  }

  async #ask(silent: readonly Watched[]): Promise<void> {
    this.#isAsking = true
    const states = await statesOf(
      this.#target,
      silent.map(({ session }) => session),
    ).catch(() => null)
    this.#isAsking = false
    for (const [at, watched] of silent.entries()) {
      const { stream } = watched.connection
      watched.looks = 0
      // Answered meanwhile.
      if (watched.unanswered === 0 || stream.bytesRead !== watched.bytesRead) continue
      const state = states?.[at] ?? 'not known'
      if (state === 'idle' || state === 'gone') stream.destroy()
    }
    if (silent.some(({ connection }) => connection.stream.destroyed)) this.#doubtOthers()
  }

  /** What went wrong with one has often gone wrong with all, and each would hold up the next statement. */
  #doubtOthers(): void {
    for (const watched of this.#watched) {
      if (watched.unanswered > 0 || watched.connection.stream.destroyed) continue
      watched.unanswered++
      watched.looks = looksAllowed - 2
      watched.connection.ping(() => {
        watched.unanswered--
      })
    }
  }
}

function listenTo(watched: Watched): void {
  const { connection } = watched
  for (const method of ['query', 'execute'] as const) {
    const send = connection[method].bind(connection)
    connection[method] = (...input) => {
      const done = input.at(-1)
      if (typeof done !== 'function') return send(...input)
      watched.unanswered++
      return send(...input.slice(0, -1), (...answer: unknown[]) => {
        watched.unanswered--
        done(...answer)
      })
    }
  }
}

/** Null where it does not tell. */
function sessionOf(connection: MysqlConnection): Promise<Session | null> {
  return new Promise((resolve) => {
    connection.query('SELECT CONNECTION_ID() AS id, @@hostname AS host', (error: Error | null, rows: Session[]) => {
      const [row] = error === null ? rows : []
      resolve(row === undefined ? null : { id: Number(row.id), host: String(row.host) })
    })
  })
}

/** Asks over a new connection; sessions that wait for a statement, though we wait for its answer, are ended with their locks. */
async function statesOf(target: Target, sessions: readonly Session[]): Promise<SessionState[]> {
  const { host, port, user, password, database, ssl, socketPath } = target
  // Only who has a connection to MySQL loads it.
  const { createConnection } = await import('mysql2/promise')
  const connection = await createConnection({
    host,
    port,
    user,
    password,
    database,
    connectTimeout: askLimitMs,
    ...(ssl === false ? {} : { ssl: ssl === true ? {} : ssl }),
    ...(socketPath === undefined ? {} : { socketPath }),
  })
  const limit = setTimeout(() => connection.destroy(), askLimitMs)
  try {
    const [names] = await connection.query('SELECT @@hostname AS host')
    const here = String((names as { host: unknown }[])[0]?.host)
    const [rows] = await connection.query('SHOW PROCESSLIST')
    const commands = new Map((rows as { Id: number; Command: string }[]).map((row) => [Number(row.Id), row.Command]))
    const states = sessions.map((session): SessionState => {
      // Another server of a cluster has sessions of its own.
      if (session.host !== here) return 'not known'
      const command = commands.get(session.id)
      if (command === undefined) return 'gone'
      return command === 'Sleep' ? 'idle' : 'working'
    })
    for (const [at, state] of states.entries()) {
      if (state === 'idle') await connection.query(`KILL ${sessions[at]?.id}`)
    }
    return states
  } finally {
    clearTimeout(limit)
    connection.destroy()
  }
}
