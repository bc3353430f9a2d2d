import type { Evidence, Violation } from '../evidence.ts'
import { tokenOf, workerOf } from './lineage.ts'
import { groupBy } from './messages.ts'

/** What is wrong with the ledger of attempts: each request has an entry of its claim and its worker, and none is left open. */
export function usageViolations({ chats, requests }: Pick<Evidence, 'chats' | 'requests'>): Violation[] {
  const byChat = groupBy(requests, ({ chat }) => chat ?? '')
  return chats.flatMap(({ row, usages }) => {
    const violation = (what: string): Violation => ({ rule: 'usage', chatId: row.id, what })
    const entries = groupBy(usages, ({ model, claimToken }) => `${model} by claim ${claimToken}`)
    const asked = groupBy(byChat.get(row.id) ?? [], (request) => `${workerOf(request)} by claim ${tokenOf(request)}`)
    return [
      ...usages
        .filter(({ status }) => status === 'pending')
        .map(({ model, claimToken }) => violation(`An entry of ${model} by claim ${claimToken} is still open.`)),
      ...[...asked].flatMap(([who, made]) => {
        const there = entries.get(who)?.length ?? 0
        return there >= made.length
          ? []
          : [violation(`${who} asked ${made.length} times (${made.map(({ id }) => id)}), and has ${there} entries.`)]
      }),
    ]
  })
}
