import { driverErrors } from './driver-error.ts'

/** Classes of SQLSTATE: a value, a constraint, a table, column or right that is not there, a view's check, a trigger's no. */
const refusing = new Set(['22', '23', '42', '44', '45'])
/** MariaDB and MySQL say of these only that something is wrong: no default, a value, no partition for it, a check. */
const alsoRefusing = new Set<unknown>([1364, 1366, 1526, 3819])
/** Of class 42, but about the account: the next statement would meet it too. */
const aboutAccount = new Set<unknown>([1203, 1226])
const refusedBySqlite = /^SQLITE_(?:CONSTRAINT|ERROR|MISMATCH|TOOBIG|RANGE)(?:_|$)/

/**
 * Whether an error says that the database works and takes this one statement for one that it can't or must not carry out: a
 * constraint, a value, a table, a column or a right that is missing, a trigger that says no. The same statement will fail
 * again, others may pass, also in the transaction that it was part of. False for what may pass or stops all writes: a
 * database that is away, a lock conflict, a time limit, a full disk, a database that only reads.
 */
export function isRefusedStatement(error: unknown): boolean {
  return driverErrors(error).some(({ errno, code, sqlState }) => {
    if (alsoRefusing.has(errno)) return true
    if (typeof sqlState === 'string') return refusing.has(sqlState.slice(0, 2)) && !aboutAccount.has(errno)
    return typeof code === 'string' && refusedBySqlite.test(code)
  })
}
