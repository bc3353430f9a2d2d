import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'

/** Why a request is not answered. */
export interface Refusal {
  readonly status: 401 | 403 | 405
  readonly text: string
}

const reading = new Set(['GET', 'HEAD'])

/** Refuses what would change something: all of it where nothing may be changed, else what comes from another site's page. */
export function refusedAct(
  { method = 'GET', headers }: Pick<IncomingMessage, 'method' | 'headers'>,
  writable: boolean,
): Refusal | null {
  if (reading.has(method)) return null
  if (!writable) return { status: 405, text: 'This board is read-only.' }
  return isFromElsewhere(headers) ? { status: 403, text: 'This request comes from another site.' } : null
}

/** Browsers say where a request comes from; programs, which no stranger's page can use, say nothing. */
function isFromElsewhere(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site !== 'same-origin' && site !== 'none'
  if (headers.origin === undefined) return false
  return hostOf(headers.origin) !== headers.host
}

function hostOf(origin: string): string | null {
  return URL.canParse(origin) ? new URL(origin).host : null
}

/** Whether an address is this machine's own. */
export function isLoopback(host: string): boolean {
  return /^(localhost|\[?::1\]?|127(\.\d{1,3}){3})$/i.test(host)
}

/**
 * Without a password the board is for this machine; a stranger's page could still reach it, by a name of its own that
 * leads here, so the name must be this machine's too.
 */
export function refusedHost({ host = '' }: IncomingHttpHeaders): Refusal | null {
  if (isLoopback(host.replace(/:\d+$/, ''))) return null
  return { status: 403, text: 'Without a password the board answers to localhost only.' }
}

/** Takes as long however much of a guess is right. */
export function isSamePassword(guess: string, password: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(guess), digest(password))
}
