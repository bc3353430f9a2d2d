import { chatNotFound } from '../../models/claims.ts'
import type { Database } from '../../models/database.ts'
import { databaseClock } from '../../models/overview.ts'
import { lookAtChat, readTranscript } from '../../models/transcript.ts'
import { type Diagnosis, diagnose } from './diagnose.ts'

/**
 * Reads a chat's rows and says why it moves or does not.
 * @param workers how many worker processes are connected; null = not known.
 * @throws {ChatNotFoundError}
 */
export async function readDiagnosis(db: Database, chatId: string, workers: number | null = null): Promise<Diagnosis> {
  const look = await lookAtChat(db, chatId)
  if (look === null) throw chatNotFound(chatId)
  const transcript = await readTranscript(db, chatId)
  return diagnose({ ...look, transcript, now: await databaseClock(db), workers })
}
