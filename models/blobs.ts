import type { Transaction } from 'sequelize'
import type { AttachmentValue } from './attachment-value.ts'
import type { Database } from './database.ts'
import { readFiles } from './read-row.ts'

// Which files are stored, and how many messages hold each. The row is there before the bytes and goes after them, so that no bytes are
// forgotten; bytes are deleted, and looked for by who wants to hold them, only under the lock on the row.

const batch = 100

/** Makes known that these files are about to be stored. Nobody holds them by that. */
export async function announceBlobs(
  db: Database,
  attachments: readonly AttachmentValue[],
  transaction: Transaction,
): Promise<void> {
  for (const attachment of inOneOrder(attachments)) await add(db, attachment, 0, transaction)
}

/** Counts the files of a message that is about to be inserted, and locks their rows for the rest of the transaction. */
export async function holdBlobs(
  db: Database,
  attachments: readonly AttachmentValue[],
  transaction: Transaction,
): Promise<void> {
  for (const attachment of inOneOrder(attachments)) await add(db, attachment, 1, transaction)
}

/**
 * Counts the files of copies of messages that were read without a lock, and locks their rows. False = one of the messages has let go
 * of its files since, so that their bytes may be gone.
 */
export async function holdCopiedBlobs(
  db: Database,
  attachments: readonly AttachmentValue[],
  transaction: Transaction,
): Promise<boolean> {
  for (const { digest } of inOneOrder(attachments)) {
    const held = await db.write(
      `UPDATE ${db.tables.blobs} SET holders = holders + 1, updated_at = ${db.dialect.now} WHERE digest = $digest AND holders > 0`,
      { digest },
      transaction,
    )
    if (held === 0) return false
  }
  return true
}

/** Counts the files of a message that is gone. What nobody holds then is for `purgeBlob`, once that is committed. */
export async function dropBlobs(
  db: Database,
  attachments: readonly AttachmentValue[],
  transaction: Transaction,
): Promise<void> {
  for (const { digest } of inOneOrder(attachments)) {
    await db.write(
      `UPDATE ${db.tables.blobs} SET holders = holders - 1, updated_at = ${db.dialect.now} WHERE digest = $digest`,
      { digest },
      transaction,
    )
  }
}

/**
 * Deletes a file that nobody holds by `remove`, then its row. False = somebody holds it, or it is not known. What `remove` throws
 * comes out and leaves the row, so that it can be tried again.
 */
export async function purgeBlob(
  db: Database,
  digest: string,
  remove: (digest: string) => Promise<void>,
  unusedForMs = 0,
): Promise<boolean> {
  return db.transaction(async (transaction) => {
    const locked = await db.write(
      `UPDATE ${db.tables.blobs} SET holders = 0 WHERE digest = $digest AND holders <= 0 ` +
        `AND updated_at <= ${db.dialect.nowPlus('$age')}`,
      { digest, age: -unusedForMs },
      transaction,
    )
    if (locked === 0) return false
    await remove(digest)
    await db.write(`DELETE FROM ${db.tables.blobs} WHERE digest = $digest`, { digest }, transaction)
    return true
  })
}

/** Deletes every file that nobody has held for so long, as `purgeBlob` does. Returns how many. */
export async function purgeUnheld(
  db: Database,
  remove: (digest: string) => Promise<void>,
  unusedForMs: number,
): Promise<number> {
  let purged = 0
  for (let after = ''; ; ) {
    const rows = await db.read(
      `SELECT digest FROM ${db.tables.blobs} WHERE digest > $after AND holders <= 0 ` +
        `AND updated_at <= ${db.dialect.nowPlus('$age')} ORDER BY digest LIMIT ${batch}`,
      { after, age: -unusedForMs },
    )
    for (const { digest } of rows) {
      after = String(digest)
      if (await purgeBlob(db, after, remove, unusedForMs)) purged += 1
    }
    if (rows.length < batch) return purged
  }
}

/**
 * Counts the files of a chat that is about to be deleted, its queued messages' too, in the transaction that holds the chat row and deletes
 * it. Returns the digests for `purgeBlob`, once that is committed.
 */
export async function dropChatBlobs(db: Database, chatId: string, transaction: Transaction): Promise<string[]> {
  const files: AttachmentValue[] = []
  for (const table of [db.tables.queuedMessages, db.tables.messages]) {
    const rows = await db.read(
      `SELECT attachments FROM ${table} WHERE chat_id = $chatId AND attachments IS NOT NULL`,
      { chatId },
      transaction,
    )
    for (const { attachments } of rows) {
      files.push(...readFiles(attachments, db.dialect))
    }
  }
  await dropBlobs(db, files, transaction)
  return [...new Set(files.map(({ digest }) => digest))]
}

async function add(
  db: Database,
  { digest, byteSize }: AttachmentValue,
  holders: 0 | 1,
  transaction: Transaction,
): Promise<void> {
  const { now, name } = db.dialect
  const taken = name === 'sqlite' ? 'ON CONFLICT (digest) DO UPDATE SET' : 'ON DUPLICATE KEY UPDATE'
  await db.write(
    `INSERT INTO ${db.tables.blobs} (digest, byte_size, holders, created_at, updated_at) ` +
      `VALUES ($digest, $byteSize, ${holders}, ${now}, ${now}) ${taken} holders = holders + ${holders}, updated_at = ${now}`,
    { digest, byteSize },
    transaction,
  )
}

/** Two transactions that lock the same rows in another order would wait for each other. */
function inOneOrder(attachments: readonly AttachmentValue[]): AttachmentValue[] {
  return attachments.toSorted((a, b) => (a.digest < b.digest ? -1 : 1))
}
