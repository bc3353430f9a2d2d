import type { Logger } from '../../config/logger.ts'
import type { Observation, RunOutcome } from './observation.ts'

export type Level = 'debug' | 'info' | 'warn' | 'error'

/** A line as a logger takes it. */
export interface LogLine {
  readonly level: Level
  readonly text: string
  /** `event` is the observation's type; fields that are null are left out. */
  readonly fields: Readonly<Record<string, unknown>>
}

type Type = Observation['type']
type Rule<Name extends Type> = readonly [
  level: Level | ((observation: Extract<Observation, { type: Name }>) => Level | null),
  text: string,
]

const ends: Readonly<Record<RunOutcome, Level>> = {
  answered: 'info',
  idle: 'debug',
  moved: 'info',
  compacted: 'info',
  parked: 'info',
  'handed-over': 'info',
  cancelled: 'info',
  failed: 'error',
  retry: 'warn',
  'put-off': 'warn',
  'claim-lost': 'warn',
  'chat-gone': 'info',
}

/** The level and the text of every line, in one place. Null = no line. */
const rules: { readonly [Name in Type]: Rule<Name> } = {
  'run.refused': ['debug', 'A chat was not taken'],
  'run.taken': ['debug', 'A chat was taken'],
  'run.ended': [({ outcome }) => ends[outcome], 'A run ended'],
  'turn.ended': ['debug', 'A turn ended'],
  'move.made': ['debug', 'A move was made'],
  'model.ended': [({ status }) => (status === 'failed' ? 'warn' : 'debug'), 'An attempt at a model ended'],
  'model.retry': ['warn', 'The model is asked again after a pause'],
  'usage.unwritten': ['warn', 'The database refused a usage entry; the turn goes on without it'],
  'tool.ended': [
    ({ outcome, error }) => (outcome === 'interrupted' || outcome === 'abandoned' || error !== null ? 'warn' : 'debug'),
    'A tool call ended',
  ],
  'compaction.ended': [
    ({ outcome }) => (outcome === 'failed' ? 'warn' : outcome === 'stored' ? 'info' : 'debug'),
    'A summary of a chat was tried',
  ],
  'approval.requested': ['info', 'A tool call waits for a decision'],
  'approval.decided': ['info', 'A tool call was decided about'],
  'queued.taken': ['debug', 'Queued messages joined the transcript'],
  'claim.lost': ['warn', 'A claim was lost: whoever holds the chat now goes on'],
  'claim.renewed-late': ['warn', 'A claim was renewed late: the database or the machine is slow'],
  'renewal.restarted': ['error', 'The thread that renews claims ended; another is started'],
  'lock.missing': ['warn', 'Redis gave no lock; the database decides alone'],
  'chat.put-off': ['info', 'A chat was put off: this process lacks its agent'],
  'chat.failed': ['error', 'A chat failed: no worker has its agent'],
  'alone.started': ['warn', 'Processes died over a chat: it runs alone'],
  'alone.ended': [({ outcome }) => (outcome === 'died' ? 'error' : 'info'), 'A chat that ran alone ended'],
  'chat.quarantined': [
    'error',
    'A chat is set aside: processes died over it, and it runs again only when somebody says so',
  ],
  'ring.lost': ['warn', 'A ring was lost; the sweeper rings again'],
  'sweep.ended': [({ rung }) => (rung > 0 ? 'debug' : null), 'The sweeper rang for chats that were due'],
  'job.started': ['debug', 'A job was begun'],
  'job.ended': ['debug', 'A job ended'],
  'events.dropped': ['debug', 'Live events were dropped'],
  'pool.started': ['debug', 'The workers were started'],
  'pool.closed': ['debug', 'The workers were closed'],
  'worker.renewed': ['warn', 'A worker took nothing though it could; it was made anew'],
  'worker.stuck': ['error', 'A worker takes nothing, made anew too: the process has to be restarted'],
  'worker.recovered': ['info', 'A worker that was made anew takes jobs again'],
  'hook.trouble': ['warn', 'A hook threw or took too long; the run goes on'],
  'database.trouble': ['warn', 'The database could not be used; it is tried again'],
  'redis.trouble': ['warn', 'Redis could not be used; it is tried again'],
  notice: ['warn', 'A notice'],
}

/** The line of an observation, or null when it is not worth one. */
export function logLine(observation: Observation): LogLine | null {
  // One rule a type; the compiler can't see that the two belong together.
  const [rule, text] = rules[observation.type] as Rule<Type>
  const level = typeof rule === 'function' ? (rule as (seen: Observation) => Level | null)(observation) : rule
  if (level === null) return null
  const { type, ...facts } = observation
  const fields: Record<string, unknown> = { event: type }
  for (const [name, value] of Object.entries(facts)) {
    if (value === null) continue
    fields[name] = name.endsWith('Ms') ? Math.round(Number(value)) : value
  }
  return { level, text: observation.type === 'notice' ? observation.message : text, fields }
}

/** How often the same trouble is worth a line, in ms: while Redis is away, each client tries again several times a second. */
const sameTroubleMs = 10_000

/** Turns what is observed into lines of a logger. */
export function logTo(logger: Logger, now: () => number = () => performance.now()): (observation: Observation) => void {
  const told = new Map<string, number>()
  const isNews = (observation: Observation): boolean => {
    if (observation.type !== 'redis.trouble' && observation.type !== 'database.trouble') return true
    const key = `${observation.type} ${observation.doing} ${observation.error.code}`
    if (now() - (told.get(key) ?? Number.NEGATIVE_INFINITY) < sameTroubleMs) return false
    told.set(key, now())
    return true
  }
  return (observation) => {
    const line = logLine(observation)
    if (line !== null && isNews(observation)) logger[line.level](line.fields, line.text)
  }
}
