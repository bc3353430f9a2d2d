/** The statements of a run that workers are disturbed at, by what they do. */
export const statementKinds = {
  take: /^UPDATE \S*chats\S* SET deaths = .*, claimed_by = (?!NULL)\S+, claimed_until/,
  look: /^SELECT .* FROM \S*chats\S* c WHERE c\.id/s,
  fence: /^UPDATE \S*chats\S* SET next_position/,
  openUsage: /^INSERT INTO \S*usages/,
  closeUsage: /^UPDATE \S*usages\S* SET status/,
  linkUsage: /^UPDATE \S*usages\S* SET message_id/,
  insertMessage: /^INSERT INTO \S*messages/,
  insertCalls: /^INSERT INTO \S*tool_calls/,
  startCall: /^UPDATE \S*tool_calls\S* SET claimed_by/,
  linkResult: /^UPDATE \S*tool_calls\S* SET result_id/,
  takeQueue: /^DELETE FROM \S*queued_messages/,
  release: /^UPDATE \S*chats\S* SET claimed_by = NULL/,
  /** Whatever writes. */
  write: /^(?:INSERT|UPDATE|DELETE)/,
} as const

export type StatementKind = keyof typeof statementKinds

/** Which kinds a statement is of; a `COMMIT` is of none. */
export function kindsOf(sql: string): StatementKind[] {
  const text = sql.trimStart()
  return (Object.keys(statementKinds) as StatementKind[]).filter((kind) => statementKinds[kind].test(text))
}

export function isCommit(sql: string): boolean {
  return /^\s*COMMIT\b/i.test(sql)
}

/** A place between two statements of a worker. */
export interface Boundary {
  readonly statement: StatementKind
  /** Not at the statement, but at the `COMMIT` of the transaction that it is part of. */
  readonly commit: boolean
  readonly moment: 'before' | 'after'
  /** The so manieth from when it is set, from 1. */
  readonly nth: number
}

/** Counts what passes, and says where a boundary is met. Transactions of several connections may overlap. */
export class BoundaryWatch {
  #set: { readonly boundary: Boundary; passed: number } | null = null
  /** The kinds of statement that each open transaction has sent. */
  readonly #sent = new WeakMap<object, Set<StatementKind>>()

  /** Watches for this one from here on, in place of any other; null = for none. */
  set(boundary: Boundary | null): void {
    this.#set = boundary && { boundary, passed: 0 }
  }

  /** Notes a statement that is about to be sent. Returns the moment at which the boundary is met by it; null = it is not, and it is met once only. */
  pass(sql: string, transaction: object | null): Boundary['moment'] | null {
    const kinds = kindsOf(sql)
    const sent = transaction === null ? undefined : (this.#sent.get(transaction) ?? new Set<StatementKind>())
    if (transaction !== null && sent !== undefined) this.#sent.set(transaction, sent)
    for (const kind of kinds) sent?.add(kind)
    const set = this.#set
    if (set === null) return null
    const { statement, commit, moment, nth } = set.boundary
    const meets = commit ? isCommit(sql) && sent?.has(statement) === true : kinds.includes(statement)
    if (!meets || ++set.passed < nth) return null
    this.#set = null
    return moment
  }
}
