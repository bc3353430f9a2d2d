/** A write of one process, told from others by its text and by how often that text came before. */
export interface WriteKey {
  /** The statement without values and table prefix; a `COMMIT` with the last write that it stores. */
  readonly statement: string
  /** Counts the writes of this text from 1. */
  readonly occurrence: number
}

/** A write as a process recorded it. */
export interface RecordedWrite extends WriteKey {
  /** Whether what it writes is stored once it is done. */
  readonly stores: boolean
}

/** Where a process is to die. */
export interface Death extends WriteKey {
  readonly moment: 'before' | 'after'
}

const writing = /^(?:INSERT|UPDATE|DELETE|REPLACE)\b/i
const committing = /^COMMIT\b/i

/** A statement's text without its values and the prefix of its tables, so that it is the same in each run. */
export function statementOf(sql: string, tablePrefix: string): string {
  return sql
    .trim()
    .replace(/;$/, '')
    .replaceAll(tablePrefix, '')
    .replaceAll('`', '')
    .replace(/'(?:[^']|'')*'/g, '?')
    .replace(/\$\w+/g, '?')
    .replace(/\s+/g, ' ')
}

/** Counts the writes of this process, and ends it at one of them. Transactions of several connections may overlap. */
export class Trap {
  readonly #tablePrefix: string
  readonly #die: () => void
  #death: Death | null = null
  #counts = new Map<string, number>()
  #writes: RecordedWrite[] = []
  /** The last write of each open transaction. */
  readonly #last = new WeakMap<object, string>()

  /** @param die ends the process at once; it does not return, but in tests. */
  constructor(tablePrefix: string, die: () => void) {
    this.#tablePrefix = tablePrefix
    this.#die = die
  }

  /** Counts anew from here on, and dies at this place; null = nowhere. */
  set(death: Death | null): void {
    this.#death = death
    this.#counts = new Map()
    this.#writes = []
  }

  /** The writes since it was set. */
  get writes(): readonly RecordedWrite[] {
    return this.#writes
  }

  /**
   * Sends a statement, counted if it writes, and dies before or after it if this is the place.
   * @param transaction what the statement is part of; null for one that stands alone.
   */
  async pass<T>(sql: string, transaction: object | null, send: () => Promise<T>): Promise<T> {
    const key = this.#count(sql.trim(), transaction)
    if (key === null) return send()
    this.#dieAt(key, 'before')
    const result = await send()
    this.#dieAt(key, 'after')
    return result
  }

  #count(sql: string, transaction: object | null): WriteKey | null {
    const commits = committing.test(sql) && transaction !== null
    if (!commits && !writing.test(sql)) return null
    const last = transaction === null ? undefined : this.#last.get(transaction)
    // A transaction that wrote nothing stores nothing.
    if (commits && last === undefined) return null
    const statement = commits ? `COMMIT of ${last}` : statementOf(sql, this.#tablePrefix)
    if (transaction !== null) this.#last.set(transaction, statement)
    const occurrence = (this.#counts.get(statement) ?? 0) + 1
    this.#counts.set(statement, occurrence)
    this.#writes.push({ statement, occurrence, stores: commits || transaction === null })
    return { statement, occurrence }
  }

  #dieAt({ statement, occurrence }: WriteKey, moment: Death['moment']): void {
    const death = this.#death
    if (death?.moment === moment && death.statement === statement && death.occurrence === occurrence) this.#die()
  }
}
