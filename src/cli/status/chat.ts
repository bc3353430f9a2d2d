import type { Settings } from '../../../config/settings.ts'
import type { Runner } from '../../../workers/queue-view.ts'
import type { Diagnosis } from '../../chat/diagnose.ts'
import { readDiagnosis } from '../../chat/diagnosis.ts'
import type { Cli } from '../cli.ts'
import type { StatusOptions } from '../commands/status.ts'
import { withDatabase } from '../connect.ts'
import { type ExitCode, exitCodes } from '../exit-codes.ts'
import { seeQueues } from './queues.ts'

/** Shows why one chat moves or does not. */
export async function showChat(cli: Cli, settings: Settings, chatId: string, options: StatusOptions): Promise<void> {
  const queues = await seeQueues(settings, async (views) => ({
    workers: (await views.all()).find(({ queue }) => queue === 'complete')?.workers?.length ?? null,
    runner: await views.runnerOf(chatId),
  }))
  const seen = 'seen' in queues ? queues.seen : { workers: null, runner: null }
  const diagnosis = await withDatabase(settings, (db) => readDiagnosis(db, chatId, seen.workers))
  // A job can be active that found the chat claimed elsewhere, or lost its claim.
  const runner = diagnosis.state === 'running' ? seen.runner : null
  if (options.json) cli.json({ ...diagnosis, runner })
  else for (const line of diagnosisLines(diagnosis, runner)) cli.line(line)
  if (options.exitCode) cli.exitCode = exitCodeFor(diagnosis)
}

/** How a chat stands, for a script. */
export function exitCodeFor({ state, advice }: Diagnosis): ExitCode {
  if (state === 'failed') return exitCodes.failed
  return advice.act === 'decide' || advice.act === 'answer' ? exitCodes.waiting : exitCodes.ok
}

/** What is known of a chat, a line each. */
export function diagnosisLines(diagnosis: Diagnosis, runner: Runner | null): string[] {
  const { chatId, agent, state, why, advice, at, claim, wish, lastMessage, failure } = diagnosis
  const facts: [string, string | null][] = [
    ['chat', `${chatId}${agent === null ? '' : ` of agent ${agent}`}`],
    ['state', state],
    ['why', why],
    ['to do', advice.text],
    ['claim', claim && `number ${claim.token}, lapses in ${seconds(claim.lapsesInMs)} unless it is renewed`],
    ['run by', runner && `${processText(runner)}, for ${seconds(at.getTime() - runner.since.getTime())}`],
    ['wanted', wish && `${wish.at.toISOString()} (${wish.inMs > 0 ? 'in' : 'for'} ${seconds(Math.abs(wish.inMs))})`],
    ['summary', diagnosis.summaryAt && `wanted at ${diagnosis.summaryAt.toISOString()}`],
    ['waits for', diagnosis.waitsFor.map((call) => `${call.kind} of ${call.name} (${call.toolCallId})`).join(', ')],
    ['cancel', diagnosis.cancelPending ? 'waits to be carried out' : null],
    ['queued', diagnosis.queued === 0 ? null : `${diagnosis.queued}`],
    ['turn', `${diagnosis.turn}, ${diagnosis.rounds} tool rounds, ${diagnosis.attempts} runs since the last message`],
    ['deaths', diagnosis.deaths === 0 ? null : deathsText(diagnosis)],
    ['put off', diagnosis.putOff === 0 ? null : `${diagnosis.putOff} times`],
    ['last message', lastMessage && `${lastMessage.position}, ${lastMessage.role}, ${lastMessage.at.toISOString()}`],
    ['failure', failure && `${failure.code} at ${failure.at}`],
  ]
  return facts.filter(([, text]) => text !== null && text !== '').map(([name, text]) => `${name.padEnd(13)}${text}`)
}

function processText({ process, own }: Runner): string {
  return own === null ? process : `a process of its own, ${own}, that ${process} started`
}

function deathsText({ deaths, lastDeath }: Diagnosis): string {
  return `${deaths} since its last committed move${lastDeath === null ? '' : `, the last by ${lastDeath}`}`
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}
