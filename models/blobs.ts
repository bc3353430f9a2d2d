import type { Transaction } from 'sequelize'
import type { AttachmentValue } from './attachment-value.ts'
import type { Database } from './database.ts'

// Which stored files are held by messages, and by how many. A file whose last holder is gone may be deleted.

/** Counts the files of a message that is about to be inserted. */
export async function holdBlobs(
  db: Database,
  attachments: readonly AttachmentValue[],
  transaction: Transaction,
): Promise<void> {
  for (const { digest, byteSize } of inOneOrder(attachments)) {
    const { now, name } = db.dialect
    const again =
      name === 'sqlite'
        ? 'ON CONFLICT (digest) DO UPDATE SET holders = holders + 1'
        : 'ON DUPLICATE KEY UPDATE holders = holders + 1'
    await db.write(
      `INSERT INTO ${db.tables.blobs} (digest, byte_size, holders, created_at, updated_at) ` +
        `VALUES ($digest, $byteSize, 1, ${now}, ${now}) ${again}`,
      { digest, byteSize },
      transaction,
    )
  }
}

/** The digests of files that nobody holds any more, once a message that had these is gone. */
export async function dropBlobs(
  db: Database,
  attachments: readonly AttachmentValue[],
  transaction: Transaction,
): Promise<string[]> {
  const free: string[] = []
  for (const { digest } of inOneOrder(attachments)) {
    await db.write(
      `UPDATE ${db.tables.blobs} SET holders = holders - 1, updated_at = ${db.dialect.now} WHERE digest = $digest`,
      { digest },
      transaction,
    )
    const gone = await db.write(
      `DELETE FROM ${db.tables.blobs} WHERE digest = $digest AND holders <= 0`,
      { digest },
      transaction,
    )
    if (gone === 1) free.push(digest)
  }
  return free
}

/** Two transactions that hold the same files in another order would wait for each other. */
function inOneOrder(attachments: readonly AttachmentValue[]): AttachmentValue[] {
  return attachments.toSorted((a, b) => (a.digest < b.digest ? -1 : 1))
}
