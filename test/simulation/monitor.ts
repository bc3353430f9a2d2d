import type { ClaimKey, TakeOptions } from '../../models/claims.ts'
import type { SettingAside } from '../../models/deaths.ts'
import type { RowsPort } from '../../src/loop/ports.ts'
import { findFault } from '../../src/testing/check-request.ts'
import type { WireMessage } from '../../src/testing/wire.ts'
import type { ToolContext } from '../../src/tools/tool.ts'
import type { ToolKind } from './agent.ts'
import { Deadlines } from './deadlines.ts'
import { DeathBooks } from './death-books.ts'
import type { SimulatedProcess } from './process.ts'
import { ttlMs } from './times.ts'
import type { World } from './world.ts'

/** What a run writes under its claim. */
const fenced = new Set<keyof RowsPort>([
  ...(['commitAnswer', 'startToolCall', 'setApproval', 'pauseToolCall', 'commitToolResult', 'transfer'] as const),
  ...(['closeToolCalls', 'takeQueued', 'settleCancelled', 'release', 'countCompaction', 'commitSummary'] as const),
  ...(['releaseCompaction', 'releaseCancelledCompaction'] as const),
])

interface Grant {
  readonly claimId: string
  readonly process: SimulatedProcess
  until: number
}

interface Effect {
  readonly key: string
  readonly process: SimulatedProcess
  /** How often that process had been disturbed when it asked for the start of the call. */
  readonly disturbances: number
  /** Whether a person had said that it may run. */
  readonly allowed: boolean
}

/** Watches what must never be, whatever goes wrong, by books of its own. */
export class Monitor {
  /** The first thing that was wrong; null = nothing. */
  violation: string | null = null
  readonly deadlines: Deadlines
  readonly deaths: DeathBooks
  readonly #world: World
  /** Who holds each chat, and until when. */
  readonly #grants = new Map<string, Grant>()
  /** Who made each claim. */
  readonly #takers = new Map<string, SimulatedProcess>()
  /** The effects of each call's tool. */
  readonly #effects = new Map<string, Effect[]>()
  /** The turns that were cancelled, and that nobody asked for again. */
  readonly #cancelled = new Map<string, number>()
  /** Calls that were allowed to run when they were first begun: one that was interrupted since is not asked about again. */
  readonly #allowed = new Set<string>()
  /** How often each process had been disturbed when it last asked for the start of a call. */
  readonly #starts = new WeakMap<SimulatedProcess, Map<string, number>>()

  constructor(world: World) {
    this.#world = world
    const violate = (what: string) => this.violate(what)
    this.deadlines = new Deadlines(world, violate)
    this.deaths = new DeathBooks(world, violate)
  }

  violate(what: string): void {
    if (this.violation !== null) return
    this.violation = what
    this.#world.trace('----', `WRONG: ${what}`)
  }

  /** A take succeeds. */
  took(process: SimulatedProcess, { chatId, claimId, reason }: TakeOptions): void {
    const { now } = this.#world.scheduler
    const grant = this.#grants.get(chatId)
    if (grant !== undefined && grant.until > now) this.violate(`${chatId} has two live claims`)
    this.deaths.taken(chatId, grant !== undefined)
    if (reason === 'complete') this.triedAgain(chatId)
    this.#grants.set(chatId, { claimId, process, until: now + ttlMs })
    this.#takers.set(claimId, process)
  }

  /** A process begins to run a chat, and goes by that claim. @param deathsBelow what it said when it took the chat. */
  goesBy(process: SimulatedProcess, { chatId, claimId }: ClaimKey, deathsBelow: number | null): void {
    if (this.#takers.get(claimId) !== process)
      this.violate(`${process.name} runs ${chatId} by a claim that another made`)
    if (this.#isHeldBy(process, { chatId, claimId })) this.deaths.allowed(chatId, deathsBelow)
  }

  /** A renewal is done. Returns what is to be called if it succeeded. */
  renews(key: ClaimKey): () => void {
    const { now } = this.#world.scheduler
    const wasLive = this.#isLive(key)
    return () => {
      if (!wasLive) this.violate(`the claim ${key.claimId} of ${key.chatId} was revived`)
      const grant = this.#grants.get(key.chatId)
      if (grant?.claimId === key.claimId) grant.until = now + ttlMs
    }
  }

  /** Somebody asks for a turn again that was cancelled. */
  triedAgain(chatId: string): void {
    this.#cancelled.delete(chatId)
  }

  #isLive({ chatId, claimId }: ClaimKey): boolean {
    const grant = this.#grants.get(chatId)
    return grant !== undefined && grant.claimId === claimId && grant.until > this.#world.scheduler.now
  }

  /** Whether that process holds the chat by its present claim. */
  #holds(process: SimulatedProcess, chatId: string): boolean {
    const claimId = process.renewer.claimOf(chatId)
    return claimId !== null && this.#isHeldBy(process, { chatId, claimId })
  }

  #isHeldBy(process: SimulatedProcess, key: ClaimKey): boolean {
    return this.#isLive(key) && this.#grants.get(key.chatId)?.process === process
  }

  /**
   * A run begins to write: a statement, or a transaction, which nobody else can come into.
   * @param given to the statement of that name.
   * @returns what is to be called once that is stored.
   */
  writes(process: SimulatedProcess, name: keyof RowsPort, given: readonly unknown[]): () => void {
    if (name === 'setAside') return this.#setsAside(given[0] as SettingAside)
    const written = writtenBy(name, given)
    if (written === null) return () => {}
    const { key, chatId } = written
    const before = this.#isHeldBy(process, key) ? null : this.#fingerprint(chatId)
    const { turn } = this.#world.tables.chat(chatId)
    const counted = before === null ? this.deaths.writes(name, chatId) : () => {}
    return () => {
      counted()
      if (name === 'settleCancelled' && before === null) this.#cancelled.set(chatId, turn)
      if (before !== null && before !== this.#fingerprint(chatId)) {
        this.violate(`${process.name} changed rows of ${chatId} by ${name} without a live claim`)
      }
      if (this.#world.tables.chat(key.chatId).claimedBy === null) this.#grants.delete(key.chatId)
    }
  }

  #setsAside(settingAside: SettingAside): () => void {
    const { chatId } = settingAside
    const set = this.deaths.setsAside(settingAside, this.#grants.has(chatId))
    return () => {
      if (set()) this.#grants.delete(chatId)
    }
  }

  #fingerprint(chatId: string): string {
    const { tables } = this.#world
    return JSON.stringify([
      tables.chat(chatId),
      tables.messages(chatId),
      tables.toolCalls(chatId),
      tables.queue(chatId),
    ])
  }

  /** A request is sent. */
  asked(process: SimulatedProcess, chatId: string, messages: readonly WireMessage[]): void {
    const made = messages.flatMap((message) => message.tool_calls ?? []).length
    const answered = messages.filter((message) => message.role === 'tool').length
    const fault = findFault(messages) ?? (made === answered ? null : `${made} calls have ${answered} results`)
    if (fault !== null) this.violate(`a request for ${chatId} can't be sent: ${fault}`)
    // One that was stopped short on its way may ask in vain; what it is told is not stored.
    if (!this.#holds(process, chatId)) return
    const chat = this.#world.tables.chat(chatId)
    const last = this.#world.tables.messages(chatId).findLast(({ role }) => role !== 'system')
    const calls = this.#world.tables.toolCalls(chatId).filter((call) => call.messageId === last?.id)
    if (last?.role === 'assistant' && calls.length === 0) this.violate(`an answer of ${chatId} is asked for again`)
    if (this.#cancelled.get(chatId) === chat.turn) this.violate(`a cancelled turn of ${chatId} is asked again`)
  }

  /** A process asks for the start of a call. */
  starts(process: SimulatedProcess, callId: string): void {
    const starts = this.#starts.get(process) ?? new Map<string, number>()
    this.#starts.set(process, starts.set(callId, process.disturbances))
    const call = this.#world.tables.toolCall(callId)
    if (call !== null && this.#isAllowed(call)) this.#allowed.add(callId)
  }

  /** A tool begins. Returns what leaves its effect. */
  begins(process: SimulatedProcess, context: ToolContext, kind: ToolKind): () => void {
    const { toolCall, idempotencyKey: key } = context
    const disturbances = this.#starts.get(process)?.get(toolCall.id) ?? process.disturbances
    const call = this.#world.tables.toolCall(toolCall.id)
    if (this.#holds(process, toolCall.chatId)) {
      if (call?.approval === 'denied') this.violate(`a denied call of ${kind} runs`)
      if (call?.resultId !== null) this.violate(`a call of ${kind} that has its result runs`)
      if (kind === 'gated' && !this.#allowed.has(toolCall.id))
        this.violate(`a call of ${kind} runs that nobody allowed`)
    }
    return () => {
      this.#world.trace(process.name, `  effect of ${kind} ${toolCall.id}`)
      const effects = this.#effects.get(toolCall.id) ?? []
      this.#effects.set(toolCall.id, effects)
      effects.push({ key, process, disturbances, allowed: isApproved(toolCall) })
      if (effects.length > 1) this.#again(effects, kind)
    }
  }

  #isAllowed(call: ToolContext['toolCall']): boolean {
    if (isApproved(call)) return true
    return this.#world.tables.toolCalls(call.chatId).some(({ approval }) => approval === 'remembered')
  }

  #again(effects: readonly Effect[], kind: ToolKind): void {
    if (effects.some(({ key }) => key !== effects[0]?.key)) this.violate(`a call of ${kind} ran by two keys`)
    if (kind === 'once') this.violate(`a call of ${kind} had its effect twice`)
    if (kind === 'unsure' && effects.filter(({ allowed }) => !allowed).length > 1) {
      this.violate(`a call of ${kind} had its effect twice, and nobody said that it may`)
    }
    // Of all that ran it one can have done so in peace.
    const undisturbed = effects.filter(({ process, disturbances }) => process.disturbances === disturbances)
    if (undisturbed.length > 1)
      this.violate(`a call of ${kind} had its effect twice, and nothing had happened to its process`)
  }
}

/** Whose rows a statement of a run writes, and by which claim; null = it needs none. */
function writtenBy(
  name: keyof RowsPort,
  given: readonly unknown[],
): { readonly key: ClaimKey; readonly chatId: string } | null {
  if (name === 'reportToParent') {
    const [{ parentId }, , key] = given as Parameters<RowsPort['reportToParent']>
    return parentId === null || key === null ? null : { key, chatId: parentId }
  }
  const key = given[0] as ClaimKey
  return fenced.has(name) ? { key, chatId: key.chatId } : null
}

function isApproved({ approval }: ToolContext['toolCall']): boolean {
  return approval === 'approved' || approval === 'remembered'
}
