import { parentPort, workerData } from 'node:worker_threads'
import { openDatabase } from '../../config/database.ts'
import { renewChatClaim, renewToolCallClaim } from '../../models/claims.ts'
import { databaseOf } from '../../models/database.ts'
import { elapsedMs, moment } from './elapsed.ts'
import { Renewal } from './renewal.ts'
import type { FromRenewal, RenewalSetup, ToRenewal } from './renewal-messages.ts'

// The entry of the thread that renews claims: it goes on while a tool blocks the main thread's event loop.

const setup = workerData as RenewalSetup
const sequelize = openDatabase(setup.database, { poolMax: 2 })
if (sequelize.getDialect() === 'mysql') {
  // A row that is locked for long must not hold up the renewal of all others.
  sequelize.addHook('afterConnect', 'shortLockWait', (connection) =>
    (connection as { promise(): { query(sql: string): Promise<unknown> } })
      .promise()
      .query('SET SESSION innodb_lock_wait_timeout = 1')
      .then(() => undefined),
  )
}
const db = databaseOf(sequelize, setup.tablePrefix)
const say = (message: FromRenewal) => parentPort?.postMessage(message)
const renewal = new Renewal(
  {
    renewChat: (chatId, claimId) => renewChatClaim(db, { chatId, claimId }, setup.ttlMs),
    renewToolCall: (callId, claimId) => renewToolCallClaim(db, callId, claimId, setup.ttlMs),
  },
  setup,
  {
    renewed: (claimId, elapsed) => say({ type: 'renewed', claimId, elapsed }),
    lost: (claimId) => say({ type: 'lost', claimId }),
  },
)

let heard = moment()
const ticking = setInterval(
  () => {
    if (elapsedMs(heard) < setup.heartbeatLimitMs) void renewal.tick()
  },
  Math.min(1000, setup.renewMs / 4),
)

parentPort?.on('message', (message: ToRenewal) => {
  heard = moment()
  switch (message.type) {
    case 'hold':
      return renewal.hold(message.claimId, message.chatId, message.elapsed)
    case 'drop':
      return renewal.drop(message.claimId)
    case 'holdCall':
      return renewal.holdToolCall(message.claimId, message.callId)
    case 'dropCall':
      return renewal.dropToolCall(message.claimId, message.callId)
    case 'heartbeat':
      return
    case 'close':
      clearInterval(ticking)
      void sequelize.close().finally(() => parentPort?.close())
      return
    default:
      return message satisfies never
  }
})
say({ type: 'up' })
