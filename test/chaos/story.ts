import { readable } from '../../src/testing/crashes/transcript.ts'
import { tokenOf, workerOf } from './checks/lineage.ts'
import type { Evidence } from './evidence.ts'

/** Everything that is known of one chat, in the order in which it happened, and its rows: what a violation is looked into by. */
export function tellStory(evidence: Evidence, chatId: string): string {
  const { chats, book, ledger, requests, takes, tally } = evidence
  const chat = chats.find(({ row }) => row.id === chatId)
  const workers = new Set(takes.filter((take) => take.chatId === chatId).map(({ worker }) => worker))
  const events: (readonly [at: number, what: string])[] = [
    ...takes
      .filter((take) => take.chatId === chatId)
      .map(({ at, worker, token }) => [at, `${worker} has taken it, claim ${token}`] as const),
    ...requests
      .filter((request) => request.chat === chatId)
      .map((request) => {
        const { id, startedAt, messages, ended, endedAt } = request
        const how = `${ended} after ${(endedAt ?? startedAt) - startedAt} ms`
        return [
          startedAt,
          `${workerOf(request)}, claim ${tokenOf(request)}, asks (${id}, ${messages.length} messages): ${how}`,
        ] as const
      }),
    ...ledger
      .filter((entry) => entry.chatId === chatId)
      .map(({ time, at, tool, key, pid }) => [time, `${tool} ${key} ${at} in process ${pid}`] as const),
    ...tally.deaths
      .filter(({ worker }) => workers.has(worker))
      .map(({ at, worker }) => [at, `${worker} is dead`] as const),
    ...tally.freezes
      .filter(({ worker }) => workers.has(worker))
      .map(({ from, to, worker }) => [from, `${worker} is stopped for ${to - from} ms`] as const),
    ...tally.outages.map(({ from, to }) => [from, `the database is hard to reach for ${to - from} ms`] as const),
  ]
  const [first = 0] = events
    .filter(([, what]) => !what.startsWith('the database'))
    .map(([at]) => at)
    .sort((one, other) => one - other)
  return [
    `Chat ${chatId}:`,
    ...events
      .filter(([at]) => at >= first - 5_000)
      .toSorted(([one], [other]) => one - other)
      .map(([at, what]) => `  ${new Date(at).toISOString().slice(11, 23)} ${what}`),
    'Said, decided and cancelled:',
    ...book.said
      .filter((said) => said.chatId === chatId)
      .map((said) => `  ${JSON.stringify({ ...said, chatId: undefined })}`),
    ...book.decisions
      .filter((decision) => decision.chatId === chatId)
      .map(({ callId, approved, heard }) => `  ${approved ? 'approved' : 'denied'} ${callId}: ${heard}`),
    ...book.cancels.filter((cancel) => cancel.chatId === chatId).map(({ heard }) => `  cancelled: ${heard}`),
    'Rows:',
    ...readable(chat?.messages ?? []).map((line, at) => `  ${at} ${line}`),
    ...(chat?.queue ?? []).map(({ content }) => `  queued: ${content}`),
    ...(chat?.usages ?? []).map(
      ({ createdAt, model, claimToken, status, messageId }) =>
        `  usage at ${createdAt.toISOString().slice(11, 23)}: ${model}, claim ${claimToken}, ${status}, ${messageId}`,
    ),
    `  ${JSON.stringify(chat?.row)}`,
  ].join('\n')
}
