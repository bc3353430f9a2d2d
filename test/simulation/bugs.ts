import type { ClaimKey } from '../../models/claims.ts'
import type { RowsPort } from '../../src/loop/ports.ts'
import type { SimulatedProcess } from './process.ts'
import type { World } from './world.ts'

/** A fault that could be in the product, planted in what the loop is given. */
export interface Bug {
  /** Changes statements for all processes. */
  readonly world?: (world: World) => void
  /** Changes what one process is given, when it starts. */
  readonly process?: (world: World, process: SimulatedProcess) => void
  /** Within how many seeds the simulator has to find it. */
  readonly within: number
}

type Fenced = 'commitAnswer' | 'startToolCall' | 'commitToolResult' | 'takeQueued' | 'release'

/** The write of a run is done whoever holds the chat. */
function withoutFence(name: Fenced): Bug['world'] {
  return ({ statements: { rows }, tables }) => {
    const fenced = rows[name] as (...given: unknown[]) => Promise<unknown>
    const write = (...given: unknown[]) => {
      const { chatId, claimId } = given[0] as ClaimKey
      const chat = tables.chat(chatId)
      const { claimedBy, claimedUntil } = chat
      Object.assign(chat, { claimedBy: claimId, claimedUntil: new Date(tables.now().getTime() + 1) })
      const came = fenced(...given)
      if (chat.claimedBy !== null) Object.assign(chat, { claimedBy, claimedUntil })
      return came
    }
    Object.assign(rows, { [name]: write })
  }
}

function rowsWith(rows: Partial<RowsPort>): (world: World) => void {
  return (world) => void Object.assign(world.statements.rows, rows)
}

/** By what they break. */
export const bugs: Readonly<Record<string, Bug>> = {
  'an answer is committed without the fence': { world: withoutFence('commitAnswer'), within: 800 },
  'a call is started without the fence': { world: withoutFence('startToolCall'), within: 1500 },
  'a result is stored without the fence': { world: withoutFence('commitToolResult'), within: 3000 },
  'the queue is taken without the fence': { world: withoutFence('takeQueued'), within: 1000 },
  'a chat is given back without the fence': { world: withoutFence('release'), within: 300 },
  'a lapsed claim is revived': {
    world({ statements, tables }) {
      const { renewChat } = statements
      statements.renewChat = async ({ chatId, claimId }, ttlMs) => {
        const chat = tables.chat(chatId)
        if (chat.claimedBy === claimId) chat.claimedUntil = new Date(tables.now().getTime() + ttlMs)
        return renewChat({ chatId, claimId }, ttlMs)
      }
    },
    within: 300,
  },
  'the end of a run clears the wish, whatever came since its look': {
    world({ statements: { rows }, tables }) {
      const { release } = rows
      rows.release = async (key, given) => release(key, { ...given, seen: tables.chat(key.chatId).wantedSeq })
    },
    within: 800,
  },
  'a decision rings, and leaves no wish': {
    world({ statements }) {
      const { decide } = statements
      statements.decide = (decision) => decide({ ...decision, wake: false })
    },
    within: 100,
  },
  'the queue is taken in two transactions': {
    process(world, process) {
      const { rows } = world.statements
      Object.assign(process.ports.rows, {
        takeQueued: async (...[key, take]: Parameters<RowsPort['takeQueued']>) => {
          const remove = async () => world.tables.unqueue(take.queued.map(({ id }) => id))
          if (!(await process.call('the queue is emptied', remove))) return false
          const messages = { ...take, queued: [] }
          return process.call('and stored', () => {
            const stored = world.monitor.writes(process, 'takeQueued', [key])
            const came = rows.takeQueued(key, messages)
            stored()
            return came
          })
        },
      } satisfies Partial<RowsPort>)
    },
    within: 1500,
  },
  'a process that died is not counted': {
    world({ statements, tables }) {
      const { take } = statements
      statements.take = async (options) => {
        const { claimedBy } = tables.chat(options.chatId)
        const taken = await take(options)
        if (taken && claimedBy !== null) tables.chat(options.chatId).deaths--
        return taken
      }
    },
    within: 50,
  },
  'a move that is committed does not count the deaths anew': {
    world({ statements: { rows }, tables }) {
      const { commitAnswer } = rows
      rows.commitAnswer = async (key, answer) => {
        const { deaths } = tables.chat(key.chatId)
        const committed = await commitAnswer(key, answer)
        tables.chat(key.chatId).deaths = deaths
        return committed
      }
    },
    within: 300,
  },
  'a chat that has cost processes is run beside all others': {
    world({ statements }) {
      const { take } = statements
      statements.take = (options) => take({ ...options, deathsBelow: null })
    },
    within: 100,
  },
  'a chat that kills its processes is never set aside': {
    world: rowsWith({ setAside: async () => false }),
    within: 100,
  },
  'nobody sweeps': {
    world({ statements }) {
      statements.dueChats = async () => []
    },
    within: 20,
  },
  'a call does not say that it was begun': {
    world({ statements: { rows }, tables }) {
      const { startToolCall } = rows
      rows.startToolCall = async (key, call) => {
        const started = await startToolCall(key, call)
        Object.assign(tables.toolCall(call.id) ?? {}, { startedAt: null })
        return started
      }
    },
    within: 1000,
  },
  'what a dead run left of its usage is never closed': {
    world: rowsWith({ closeOrphanedUsages: async () => {} }),
    within: 150,
  },
  'a cancel leaves the wish for its turn to be asked again': {
    world({ statements: { rows }, tables }) {
      const { settleCancelled } = rows
      rows.settleCancelled = async (key, settled) => {
        await settleCancelled(key, settled)
        Object.assign(tables.chat(key.chatId), { cancelledTurn: null, wantedAt: tables.now() })
      }
    },
    within: 200,
  },
}
