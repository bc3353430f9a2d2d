import { isAtLeast } from './check-process.ts'
import type { Finding, ModelFacts, RedisFacts, Unusable } from './facts.ts'

const ok = (name: string, what: string): Finding => ({ name, status: 'ok', what, fix: null })

/** What was tried and can't be used. */
export function checkUnusable(name: 'database' | 'redis', { place, why, missing }: Unusable): Finding {
  const what = `${place}: ${why}`
  const variable = name === 'database' ? 'DATABASE_URL' : 'REDIS_URL'
  if (!missing) {
    return {
      name,
      status: 'fail',
      what,
      fix: `Check that it runs and can be reached from here, and what ${variable} says.`,
    }
  }
  const begin = name === 'database' ? 'Run threadmill migrate, which makes it' : 'Start a worker, which starts one'
  return { name, status: 'warn', what, fix: `${begin}, or set ${variable}.` }
}

export function checkRedis({ version, place, embedded }: RedisFacts): Finding {
  const name = 'redis'
  const what = `${version === null ? 'a server without a version' : `version ${version}`} at ${place}${embedded === null ? '' : `, embedded (${embedded})`}`
  if (embedded === 'js-redis-server') {
    const fix = 'It is slow and forgets: install redis-server or valkey-server, or set REDIS_URL.'
    return { name, status: 'warn', what, fix }
  }
  if (version === null || isAtLeast(version, [6, 2])) return ok(name, what)
  return { name, status: 'fail', what, fix: 'Use Redis 6.2 or newer.' }
}

export function checkEviction({ policy }: RedisFacts): Finding {
  const name = 'redis eviction'
  if (policy === 'noeviction') return ok(name, 'maxmemory-policy noeviction')
  if (policy === null) return ok(name, 'the server does not tell its maxmemory-policy')
  const fix = 'Set maxmemory-policy to noeviction: a job that is evicted waits for the sweeper.'
  return { name, status: 'fail', what: `maxmemory-policy ${policy}`, fix }
}

/** Nothing is lost without it, so it is never a failure. */
export function checkPersistence({ persists }: RedisFacts): Finding {
  const name = 'redis persistence'
  if (persists === null) return ok(name, 'the server does not tell; rings and live events need none')
  return ok(
    name,
    persists
      ? 'it writes to disk'
      : 'none: after a restart rings are made anew from the rows, and live events of running answers are gone',
  )
}

export function checkModel({ place, status, why, wanted, listed }: ModelFacts): Finding {
  const name = 'model'
  if (status === null) {
    return {
      name,
      status: 'fail',
      what: `${place} does not answer: ${why}`,
      fix: 'Check OPENAI_BASE_URL and the network.',
    }
  }
  const what = `${place} answered ${status} to GET /models`
  if (status === 401 || status === 403) {
    return { name, status: 'fail', what, fix: 'The key was refused: check OPENAI_API_KEY.' }
  }
  if (status >= 400 || listed === null) {
    return {
      name,
      status: 'warn',
      what: `${what}, with no list`,
      fix: 'Check that OPENAI_BASE_URL ends where the API begins.',
    }
  }
  if (wanted === null) return ok(name, `${what}: ${listed.length} models`)
  if (listed.includes(wanted)) return ok(name, `${what}: ${wanted} is among ${listed.length} models`)
  return { name, status: 'warn', what: `${what}, without ${wanted}`, fix: 'Check the name in THREADMILL_MODEL.' }
}
