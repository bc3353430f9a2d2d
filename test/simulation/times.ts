// In ms of virtual time, as a system is set up by default; sweeps and looks for cancels are rarer, for there are few chats.

export const ttlMs = 45_000
export const renewMs = 10_000
export const marginMs = 5_000
export const renewalTickMs = 2_500
export const sweepEveryMs = 15_000
export const cancelLookMs = 2_000
/** From here on nothing goes wrong any more. */
export const calmAtMs = 300_000
/** Within which a calm world must come to rest: the longest wait before a retry is ten minutes. */
export const restWithinMs = 4 * 3_600_000

/** As a driver says that its server is not there. */
export function databaseAway(): Error {
  return Object.assign(new Error('the connection was lost'), { name: 'SequelizeConnectionError' })
}

/** As a driver says that a transaction lost to another one. */
export function lockConflict(): Error {
  return Object.assign(new Error('the lock wait timed out'), { code: 'ER_LOCK_WAIT_TIMEOUT' })
}
