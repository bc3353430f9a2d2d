import { Redis } from 'ioredis'
import type { Threadmill } from '../../../src/index.ts'
import { insidesOf } from '../../support/insides.ts'

/** Lets the claims of dead processes lapse, which outlive every pause of a busy machine otherwise, and their locks with them. */
export async function lapse(mill: Threadmill, redisUrl: string, chatIds: readonly string[]): Promise<void> {
  const { db } = insidesOf(mill)
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: null })
  await redis.del(...chatIds.map((id) => `threadmill:claim:{${id}}`))
  const earlier = db.dialect.time(new Date(Date.now() - 60_000))
  for (const id of chatIds) {
    await db.write(`UPDATE ${db.tables.chats} SET claimed_until = $earlier WHERE id = $id AND claimed_by IS NOT NULL`, {
      id,
      earlier,
    })
  }
  redis.disconnect()
}
