import { conversations } from './0001-conversations.ts'
import { compaction } from './0002-compaction.ts'
import { turnEnds } from './0003-turn-ends.ts'
import { backlog } from './0004-backlog.ts'
import { cacheBoundaries } from './0005-cache-boundaries.ts'
import { resultEncoding } from './0006-result-encoding.ts'
import { waits } from './0007-waits.ts'
import { modelRows } from './0008-models.ts'
import { attachments } from './0009-attachments.ts'
import { owners } from './0010-owners.ts'
import { receipts } from './0011-receipts.ts'
import { agents } from './0012-agents.ts'
import { deaths } from './0013-deaths.ts'
import { putOffs } from './0014-put-off.ts'
import type { Migration } from './migration.ts'

export type { Migration, MigrationContext } from './migration.ts'

/** Every step of the schema, in order. */
export const migrations: readonly Migration[] = [
  conversations,
  compaction,
  turnEnds,
  backlog,
  cacheBoundaries,
  resultEncoding,
  waits,
  modelRows,
  attachments,
  owners,
  receipts,
  agents,
  deaths,
  putOffs,
]
