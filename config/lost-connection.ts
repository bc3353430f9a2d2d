import { BaseError } from 'sequelize'
import { driverErrors } from './driver-error.ts'

/** The server ends the session: it shuts down, somebody killed the session, or it was silent for too long. */
const ended = new Set<unknown>([1053, 1152, 1927, 3169, 4031])
/** Of sockets, and of mysql2 itself. */
const broken = new Set<unknown>([
  'PROTOCOL_CONNECTION_LOST',
  'PROTOCOL_ENQUEUE_AFTER_FATAL_ERROR',
  'ECONNRESET',
  'ECONNREFUSED',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ENETUNREACH',
])

/**
 * Whether an error says that the connection to the database was lost, before a statement or in the middle of one, so that another
 * connection may do better. Whether the statement had its effect is not known. Sequelize names such errors after the connection only
 * where it was being made. Errors that are not Sequelize's are about other connections than the database's.
 */
export function isLostConnection(error: unknown): boolean {
  if (!(error instanceof BaseError)) return false
  return driverErrors(error).some(({ errno, code, fatal }) => fatal === true || ended.has(errno) || broken.has(code))
}
