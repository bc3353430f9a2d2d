import type { Transaction } from 'sequelize'
import { v7 as uuid } from 'uuid'
import { modelColumns } from './columns.ts'
import type { Database } from './database.ts'
import type { ModelRow } from './rows.ts'

/** What is known of a model that a chat names. */
export type NamedModel = Pick<ModelRow, 'provider' | 'modelId'> & Partial<ModelRow>

/**
 * The row of a model, made where there is none. Of several processes that make it at once one does, and all get the same. (S32)
 */
export async function findOrCreateModel(db: Database, model: NamedModel, transaction: Transaction): Promise<string> {
  const found = await findModel(db, model, transaction)
  if (found !== null) return found
  const now = new Date()
  const row: ModelRow = {
    id: uuid(),
    name: model.modelId,
    family: null,
    contextWindow: null,
    maxOutputTokens: null,
    modalities: null,
    capabilities: null,
    pricing: null,
    metadata: null,
    unlistedAt: null,
    createdAt: now,
    updatedAt: now,
    ...model,
  }
  await db.insert<ModelRow>(db.tables.models, modelColumns, [row], { transaction, unlessTaken: true })
  // Another process may have been quicker: its row counts.
  return (await findModel(db, model, transaction)) ?? row.id
}

/** The id of a model's row; null where there is none. */
export async function findModel(
  db: Database,
  { provider, modelId }: Pick<ModelRow, 'provider' | 'modelId'>,
  transaction?: Transaction,
): Promise<string | null> {
  const [raw] = await db.read(
    `SELECT id FROM ${db.tables.models} WHERE provider = $provider AND model_id = $modelId${transaction ? db.dialect.forUpdate : ''}`,
    { provider, modelId },
    transaction,
  )
  return raw === undefined ? null : (raw.id as string)
}
