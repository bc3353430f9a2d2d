import { chatNotFound } from '../../models/claims.ts'
import { deleteChat } from '../../models/deleting.ts'
import { lookAtChat } from '../../models/transcript.ts'
import { purgeFiles } from '../attachments/keeping.ts'
import { tellParent } from '../loop/sub-chats.ts'
import type { ChatDependencies } from './chat-handle.ts'

/**
 * Deletes a chat with all of its rows, its sub-chats, their files and their streams. A call that it is to answer is told first, or it would
 * wait for ever.
 * @throws {ChatNotFoundError} when there is no such chat.
 */
export async function removeChat(deps: ChatDependencies, id: string): Promise<void> {
  const look = await lookAtChat(deps.db, id)
  if (look === null) throw chatNotFound(id)
  await tellParent({ ports: deps.ports, chat: look.chat, claim: null }, { kind: 'cancelled' })
  const { ids, digests } = await deleteChat(deps.db, id)
  await purgeFiles(
    deps,
    digests.map((digest) => ({ digest })),
  )
  await Promise.all(ids.map((gone) => deps.ports.events.forget(gone)))
}
