import { httpError } from '../replies.ts'
import type { RawReply, Reply, ReplyFunction } from '../reply.ts'

/**
 * How the model of a scenario answers. The nth reply of a list is for a request with n-1 answers in it: whoever asks again after a crash gets
 * the same, however often it is asked.
 */
export function scripted(model: readonly Reply[] | ReplyFunction): ReplyFunction {
  if (typeof model === 'function') return model
  return ({ messages }) => {
    const answers = messages.filter(({ role }) => role === 'assistant').length
    return model[answers] ?? noReply(answers)
  }
}

/** The openai client would try a plain 500 again. */
const noReply = (answers: number): RawReply =>
  httpError(500, `the script has no reply for a request with ${answers} answers in it`, { 'x-should-retry': 'false' })
