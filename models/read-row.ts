import { Big } from 'big.js'
import type { AttachmentValue } from './attachment-value.ts'
import { type Columns, entries, type JsonKind, type Kind } from './columns.ts'
import { withDamage } from './damage.ts'
import type { Dialect } from './dialect.ts'
import type { Failure, Json } from './rows.ts'
import { isSettings } from './settings-shape.ts'
import { isFailure, isFiles, isObject, isPause, isTransfer, unreadableFailure } from './shapes.ts'

/** Reads what `selectList` selected. What can't be read is null, or empty, and noted as the row's damage. Never throws. */
export function readRow<Row>(
  columns: Columns<Row>,
  raw: Readonly<Record<string, unknown>>,
  dialect: Dialect,
  prefix = '',
): Row {
  const row: Record<string, unknown> = {}
  const damage: string[] = []
  for (const [key, [, kind]] of entries(columns)) {
    const stored = raw[prefix + key] ?? null
    // Some drivers give JSON's own null as nothing; a chat always has settings.
    const value = stored === null && kind !== 'settings' ? null : readValue(kind, stored, dialect)
    if (value === unreadable) damage.push(key)
    row[key] = value === unreadable ? insteadOf(kind) : value
  }
  return withDamage(row, damage) as Row
}

const unreadable = Symbol('unreadable')

/** What a column reads as that holds something else. */
function insteadOf(kind: Kind): unknown {
  if (kind === 'settings') return {}
  if (kind === 'failure') return unreadableFailure
  return kind === 'stamp' ? new Date(0) : null
}

function readValue(kind: Kind, value: unknown, dialect: Dialect): unknown {
  switch (kind) {
    case 'time':
    case 'stamp': {
      const time = dialect.readTime(value)
      return Number.isNaN(time.getTime()) ? unreadable : time
    }
    case 'bool':
      return Boolean(value)
    case 'int':
      return Number(value)
    case 'decimal':
      // SQLite keeps decimals as floats, of which 15 digits are exact.
      return typeof value === 'number' ? new Big(value.toPrecision(15)).toFixed() : String(value)
    case 'text':
      return value
    default:
      return readJson(kind, value, dialect)
  }
}

/** A value of a JSON column that was read by itself; null where it can't be read. */
export function readStored(kind: JsonKind, value: unknown, dialect: Dialect): Json {
  const json = value === null || value === undefined ? null : readJson(kind, value, dialect)
  return json === unreadable ? null : json
}

/** The files of a message; none where they can't be read. */
export function readFiles(value: unknown, dialect: Dialect): AttachmentValue[] {
  return (readStored('files', value, dialect) ?? []) as AttachmentValue[]
}

/** A failure that is not null. */
export function readFailure(value: unknown, dialect: Dialect): Failure {
  const failure = readJson('failure', value, dialect)
  return failure === unreadable || failure === null ? unreadableFailure : (failure as Failure)
}

const isShape: Readonly<Record<JsonKind, (value: Json) => boolean>> = {
  json: () => true,
  object: isObject,
  settings: isSettings,
  list: Array.isArray,
  files: isFiles,
  failure: isFailure,
  transfer: isTransfer,
  pause: isPause,
}

function readJson(kind: JsonKind, value: unknown, dialect: Dialect): Json | typeof unreadable {
  try {
    const json = dialect.readJson(value)
    // JSON's own null is nothing where a column may hold nothing.
    const isNothing = json === null && kind !== 'settings' && kind !== 'failure'
    return isNothing || isShape[kind](json) ? json : unreadable
  } catch {
    return unreadable
  }
}
