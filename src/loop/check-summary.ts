import { SummaryRefusedError } from '../errors.ts'
import type { Answer } from '../providers/provider.ts'
import { isCutByLimit } from '../tools/results.ts'
import { measuredTokens } from './context-size.ts'

/**
 * Refuses a summary that can't stand for what it is to replace. It has to be shorter, by characters: both texts are counted
 * the same way, whatever the model. Where the provider reports tokens, it must also have fewer (reasoning not counted) than
 * the request that it came from.
 * @param replaced characters of what it is to replace.
 * @throws {SummaryRefusedError}
 */
export function checkSummary(chatId: string, model: string, answer: Answer, replaced: number): void {
  const problem = problemOf(answer, replaced)
  if (problem === null) return
  throw new SummaryRefusedError(
    `Model ${model} made no summary that can be used for chat ${chatId}: ${problem}. Its cost is in the ledger, and nothing ` +
      'was replaced. Try again, give other instructions, or name another model.',
    { chatId },
  )
}

function problemOf(answer: Answer, replaced: number): string | null {
  const text = answer.text.trim()
  if (answer.toolCalls.length > 0) return 'it asked for tools instead'
  if (text === '') return 'it is empty'
  if (isCutByLimit(answer.finishReason)) return 'it was cut off by the limit on its length'
  if (text.length >= replaced) return `it has ${text.length} characters and was to replace ${replaced}`
  const output = answer.usage?.output ?? null
  const total = measuredTokens(answer.usage)
  if (output === null || total === null) return null
  const input = total - output
  const written = output - (answer.usage?.thinking ?? 0)
  return written >= input ? `it has ${written} tokens, and the whole request had ${input}` : null
}
