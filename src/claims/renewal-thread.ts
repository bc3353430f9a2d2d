import { type MessagePort, parentPort } from 'node:worker_threads'
import type { Sequelize } from 'sequelize'
import { openTarget } from '../../config/database.ts'
import { renewChatClaim, renewToolCallClaim } from '../../models/claims.ts'
import { databaseOf } from '../../models/database.ts'
import { elapsedMs, moment } from './elapsed.ts'
import { Renewal } from './renewal.ts'
import type { FromRenewal, RenewalSetup, ToRenewal } from './renewal-messages.ts'
import type { OpenRenewal } from './shared-thread.ts'
import { Widening, type WideningLimits } from './widening.ts'

/** Connections to the database: two usually, all of them while it is slow to answer. */
const room: WideningLimits = { usual: 2, most: 12, slowMs: 50 }
/** Longer than any claim goes without a renewal: connecting anew costs several round trips. */
const poolIdleMs = 60_000

// The entry of the thread that renews claims: it goes on while a tool blocks the main thread's event loop.

parentPort?.on('message', ({ setup, port }: OpenRenewal) => serve(setup, port))

/** Renews the claims of one connection until its port says `close`. */
function serve(setup: RenewalSetup, port: MessagePort): void {
  const sequelize = openReserved(setup)
  const say = (message: FromRenewal) => port.postMessage(message)
  const renewal = renewalOf(sequelize, setup, say)
  let heard = moment()
  const ticking = setInterval(
    () => {
      if (elapsedMs(heard) < setup.heartbeatLimitMs) void renewal.tick()
    },
    Math.min(1000, setup.renewMs / 4),
  )
  const obey = (message: ToRenewal) => {
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
        return say({ type: 'beat' })
      case 'close':
        clearInterval(ticking)
        void sequelize.close().finally(() => port.close())
        return
      default:
        return message satisfies never
    }
  }
  port.on('message', (messages: ToRenewal[]) => {
    heard = moment()
    for (const message of messages) obey(message)
  })
  void connected(sequelize).then(() => say({ type: 'up' }))
}

/** Waits for the usual connections: to a slow database they take as long as a short claim lives. Never rejects. */
async function connected(sequelize: Sequelize): Promise<void> {
  const one = () => sequelize.query('SELECT 1').catch(() => {})
  // SQLite has one connection; of two that are asked for at once Sequelize opens both, and closes the second only.
  const connections = sequelize.getDialect() === 'sqlite' ? 1 : room.usual
  await Promise.all(Array.from({ length: connections }, one))
}

/** Connections that nothing else uses, so that renewals never wait for one. */
function openReserved(setup: RenewalSetup): Sequelize {
  const sequelize = openTarget(setup.database, { poolMax: room.most, poolIdleMs })
  if (sequelize.getDialect() === 'mysql') {
    // A row that is locked for long must not hold up the renewal of all others.
    sequelize.addHook('afterConnect', 'shortLockWait', (connection) =>
      (connection as { promise(): { query(sql: string): Promise<unknown> } })
        .promise()
        .query('SET SESSION innodb_lock_wait_timeout = 1')
        .then(() => undefined),
    )
  }
  return sequelize
}

function renewalOf(sequelize: Sequelize, setup: RenewalSetup, say: (message: FromRenewal) => void): Renewal {
  const db = databaseOf(sequelize, setup.tablePrefix)
  const widening = new Widening(room)
  return new Renewal(
    {
      renewChat: (chatId, claimId, onSent) =>
        widening.run(() => renewChatClaim(db, { chatId, claimId }, setup.ttlMs, onSent)),
      renewToolCall: (callId, claimId) => widening.run(() => renewToolCallClaim(db, callId, claimId, setup.ttlMs)),
    },
    setup,
    {
      renewed: (claimId, elapsed, gap) => say({ type: 'renewed', claimId, elapsed, gap }),
      lost: (claimId) => say({ type: 'lost', claimId }),
    },
  )
}
