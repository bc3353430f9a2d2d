import { isDeepStrictEqual } from 'node:util'
import { newMessage, userMessage } from '../../models/new-message.ts'
import type { NewSubChat } from '../../models/sub-chats.ts'
import { newlyClosed, openRequests, openSubChat, pauseOf } from '../../models/waiting.ts'
import type { RowsPort } from '../../src/loop/ports.ts'
import { cancelBelow } from './cancelling.ts'
import { fence, wakeUp } from './fence.ts'
import { savePending } from './settings.ts'
import type { MemoryTables } from './tables.ts'
import { rests } from './turns.ts'

type PauseRows = Pick<RowsPort, 'setApproval' | 'pauseToolCall' | 'reportToParent' | 'transfer'>

/** The transactions of `models/pausing.ts`, `models/sub-chats.ts` and `models/transferring.ts`. */
export function pauseRows(tables: MemoryTables): PauseRows {
  return {
    async setApproval(key, { id, from, to, interrupted, expiresAt = null, expired }) {
      fence(tables, key)
      const call = tables.toolCall(id)
      if (!rests(call, from)) return false
      const now = tables.now()
      const askedAt = expired ? null : (call.askedAt ?? now)
      Object.assign(call, { approval: to, askedAt, expiresAt, decisionReason: expired ?? null, updatedAt: now })
      // An interrupted call keeps its start: only a person may let it run again.
      if (interrupted) Object.assign(call, { claimedBy: null, claimedUntil: null })
      if (expired) tables.audit({ id, chatId: key.chatId }, { action: 'expired', reason: expired })
      return true
    },
    async pauseToolCall(key, { id, state, subChat, expired }) {
      fence(tables, key, { moved: true })
      const call = tables.toolCall(id)
      const open = call === null ? [] : openRequests(call).map((request) => request.key)
      if (expired !== undefined && !expired.seen.every((one) => open.includes(one))) return false
      if (call === null || call.resultId !== null) return false
      const nothing = { claimedBy: null, claimedUntil: null, startedAt: null }
      Object.assign(call, { ...nothing, mcpState: state, updatedAt: tables.now() })
      if (subChat !== undefined) insertSubChat(tables, id, subChat)
      if (expired === undefined) return true
      for (const { key: requestKey, answer = null } of newlyClosed(state, expired.seen)) {
        tables.audit(
          { id, chatId: key.chatId },
          { action: 'expired', reason: expired.reason, requestKey, value: answer },
        )
      }
      return true
    },
    async reportToParent({ id, parentId, parentCallId }, outcome, key) {
      if (parentId === null || parentCallId === null) return false
      const parent = tables.chat(parentId)
      if (key !== null) fence(tables, key)
      if (outcome.kind === 'failed') cancelBelow(tables, id)
      const call = tables.findToolCall(parentId, parentCallId)
      const subChat = call === null || call.resultId !== null ? null : openSubChat(call)
      if (call === null || subChat === null || subChat.id !== id) return false
      const now = tables.now()
      Object.assign(call, { mcpState: { ...pauseOf(call), subChat: { ...subChat, outcome } }, updatedAt: now })
      wakeUp(parent, now, parent.failure === null)
      parent.updatedAt = now
      return true
    },
    async transfer(key, { agent, inputs, leavesInstructions, instructions: stored }) {
      const chat = fence(tables, key, { moved: true })
      if (chat === null || !isDeepStrictEqual(chat.transferTo, { agent, inputs })) return false
      Object.assign(chat, { agent, transferTo: null, putOff: 0 })
      const { tools: _, ...settings } = chat.settings
      const hasOwn = tables.messages(key.chatId).some(({ role }) => role === 'system')
      const replaces = leavesInstructions || (stored !== null && !hasOwn)
      const instructions = stored === null ? [] : [{ content: stored, cacheBoundary: null }]
      savePending(tables, chat, { settings, inputs, ...(replaces ? { instructions } : {}) })
      return true
    },
  }
}

function insertSubChat(tables: MemoryTables, callId: string, subChat: NewSubChat): void {
  const { id, agent, inputs, instructions, parent, messageId, message } = subChat
  const root = { rootId: parent.rootId ?? parent.id, depth: parent.depth + 1 }
  tables.addChat({ id, agent, inputs, owner: parent.owner, parentId: parent.id, parentCallId: callId, ...root })
  Object.assign(tables.chat(id), { turn: 1, wantedSeq: 1, wantedAt: tables.now() })
  const system =
    instructions === null
      ? []
      : [newMessage({ id: `${id}-system`, chatId: id, role: 'system', content: instructions, createdAt: tables.now() })]
  const first = { ...userMessage(id, messageId, { content: message, attachments: null }), createdAt: tables.now() }
  tables.append(id, [...system, first])
}
