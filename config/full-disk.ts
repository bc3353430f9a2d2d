import { BaseError } from 'sequelize'
import { driverErrors } from './driver-error.ts'

/** Of SQLite; of MySQL and MariaDB, about the disk and about the file of a table. */
const full = new Set<unknown>(['SQLITE_FULL', 'ER_DISK_FULL', 'ER_RECORD_FILE_FULL', 1021, 1114])

/** Whether an error says that the database has no room left for what it was to write: nothing of it was written, and there may be room later. */
export function isDiskFull(error: unknown): boolean {
  return error instanceof BaseError && driverErrors(error).some(({ errno, code }) => full.has(errno) || full.has(code))
}
