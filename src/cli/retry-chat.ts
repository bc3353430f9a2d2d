import { ChatNotFailedError } from '../errors.ts'
import type { Threadmill } from '../threadmill.ts'

/**
 * Wants a failed chat again, as an explicit enqueue does. Returns what it did, in words.
 * @param force whether to run a chat that has not failed, too.
 * @throws {ChatNotFailedError} {ChatNotFoundError} nothing was changed.
 */
export async function retryChat(mill: Threadmill, chatId: string, force: boolean): Promise<string> {
  const failure = await (await mill.chats.find(chatId)).failure()
  if (failure === null && !force) {
    throw new ChatNotFailedError('It has not failed, so nothing was changed: --force runs it all the same.', { chatId })
  }
  await mill.jobs.complete.enqueue(chatId)
  return failure === null ? 'had not failed; runs again' : `failed with ${failure.code}; runs again`
}
