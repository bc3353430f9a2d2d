import { TEXT_LIMIT_BYTES } from '../../tools/text-limit.ts'
import { isAtLeast } from './check-process.ts'
import type { DatabaseFacts, Finding, SetUp } from './facts.ts'

const ok = (name: string, what: string): Finding => ({ name, status: 'ok', what, fix: null })

export function checkServer({ dialect, place, version, isEmbedded }: DatabaseFacts): Finding {
  const what = `${version} at ${place}${isEmbedded ? ', embedded: for one machine and a few processes' : ''}`
  if (dialect === 'sqlite') return ok('database', what)
  const isMaria = /mariadb/i.test(version)
  if (isAtLeast(version, isMaria ? [10, 6] : [8, 0])) return ok('database', what)
  return { name: 'database', status: 'fail', what, fix: 'Use MySQL 8.0 or newer, or MariaDB 10.6 or newer.' }
}

export function checkMigrations({ migrations: { pending, unknown } }: DatabaseFacts): Finding {
  const name = 'migrations'
  if (pending.length > 0) {
    return { name, status: 'fail', what: `the tables lack ${pending.join(', ')}`, fix: 'Run threadmill migrate.' }
  }
  if (unknown.length === 0) return ok(name, 'the tables are up to date')
  const what = `the tables have steps of a newer version: ${unknown.join(', ')}`
  return { name, status: 'warn', what, fix: 'Update threadmill here to the version that migrated them.' }
}

/** One set of keys in Redis belongs to one set of tables: two that share it would take each other's rings. */
export function checkPrefixes({ prefixes }: DatabaseFacts, { tablePrefix, redisPrefix }: SetUp): Finding {
  const name = 'prefixes'
  const others = prefixes.filter((prefix) => prefix !== tablePrefix)
  const clash = others.find((prefix) => prefix.replace(/_+$/, '') === redisPrefix)
  if (clash !== undefined) {
    return {
      name,
      status: 'warn',
      what: `the keys of ${tablePrefix} in Redis begin with ${redisPrefix}, as those of the tables ${clash} do by default`,
      fix: 'Give each set of tables a THREADMILL_REDIS_PREFIX of its own, or leave it out everywhere.',
    }
  }
  const beside = others.length === 0 ? '' : `; also in this database: ${others.join(', ')}`
  return ok(name, `tables ${tablePrefix}, keys ${redisPrefix}${beside}`)
}

/** What the sessions of this process are like. A proxy between the two may undo what they ask for. */
export function checkSession({ dialect, session }: DatabaseFacts): Finding {
  const name = 'session'
  if (dialect === 'sqlite') return ok(name, 'transactions are IMMEDIATE and serial')
  const isolation = (session.transaction_isolation ?? session.tx_isolation ?? 'unknown').replace('-', ' ')
  const mode = session.sql_mode ?? ''
  const what = `${isolation}, counts matched rows, sql_mode ${mode}`
  const wrong = [
    ...(isolation === 'READ COMMITTED' ? [] : ['READ COMMITTED']),
    ...(/STRICT_(ALL|TRANS)_TABLES/.test(mode) ? [] : ['a strict sql_mode']),
    ...(/NO_BACKSLASH_ESCAPES|ANSI_QUOTES/.test(mode)
      ? ['an sql_mode without NO_BACKSLASH_ESCAPES and ANSI_QUOTES']
      : []),
  ]
  if (wrong.length === 0) return ok(name, what)
  const fix =
    'Every session asks for it when it begins: let the proxy between here and the server keep what sessions set.'
  return { name, status: 'fail', what: `it lacks ${wrong.join(', ')} (${what})`, fix }
}

export function checkText({ dialect, session, tableCollation }: DatabaseFacts): Finding {
  const name = 'text'
  if (dialect === 'sqlite') return ok(name, 'UTF-8')
  const packet = Number(session.max_allowed_packet)
  const what = `connection ${session.character_set_connection}, tables ${tableCollation ?? 'not there yet'}, max_allowed_packet ${packet} bytes`
  if (packet < TEXT_LIMIT_BYTES + 65_536) {
    const fix = `Set max_allowed_packet to ${2 * TEXT_LIMIT_BYTES} at least: a message may have ${TEXT_LIMIT_BYTES} bytes.`
    return { name, status: 'fail', what, fix }
  }
  const isWhole = session.character_set_connection === 'utf8mb4' && (tableCollation ?? 'utf8mb4').startsWith('utf8mb4')
  if (isWhole) return ok(name, what)
  return { name, status: 'fail', what, fix: 'Convert the tables, and what overrides the connection, to utf8mb4.' }
}
