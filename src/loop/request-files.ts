import type { AttachmentValue } from '../../models/rows.ts'
import { requestAttachments, takenAttachments } from '../attachments/convert.ts'
import type { ModelClient, ModelRequest, RequestMessage } from '../providers/provider.ts'
import type { RunContext } from './run-context.ts'

/**
 * The request with the bytes of its files, as far as the model can take them. What a tool attached and the model can't take is named
 * in the call's result: whoever asks can do nothing about it, so an error would end every later turn too. (E82)
 * @throws {UnsupportedAttachmentError} for a user's file that it can't take and nobody converts.
 */
export async function withFiles(
  { configuration, chatId }: Pick<RunContext, 'configuration'> & { readonly chatId: string },
  client: ModelClient,
  request: ModelRequest,
): Promise<ModelRequest> {
  if (!request.messages.some(hasFiles)) return request
  const { store, converters } = configuration
  const supports = (contentType: string) => client.supportsAttachment?.(contentType) === true
  const options = { chatId, store, supports, converters }
  const messages = request.messages.map(async (message): Promise<RequestMessage> => {
    if (!hasFiles(message)) return message
    const { attachments } = message
    if (message.role === 'user') return { ...message, files: await requestAttachments(attachments, options) }
    const taken = await takenAttachments(attachments, options)
    const files = taken.filter((file) => file !== null)
    return { ...message, content: naming(message.content, attachments, taken), files }
  })
  return { ...request, messages: await Promise.all(messages) }
}

type WithFiles = Exclude<RequestMessage, { role: 'assistant' }> & { readonly attachments: readonly AttachmentValue[] }

function hasFiles(message: RequestMessage): message is WithFiles {
  return message.role !== 'assistant' && message.attachments !== undefined
}

/** A result with a line for each of its files, whether it is sent or not. */
function naming(content: string, attachments: readonly AttachmentValue[], taken: readonly unknown[]): string {
  const lines = attachments.map(({ filename, contentType, byteSize }, at) => {
    const unseen = taken[at] === null ? ', which can not be shown to you' : ''
    return `Attached: ${filename} (${contentType}, ${byteSize} bytes)${unseen}`
  })
  return [...(content === '' ? [] : [content, '']), ...lines].join('\n')
}
