import type { AttachmentValue } from '../../models/rows.ts'
import type { EventAttachment } from './event.ts'

/** The files of a message as viewers see them. */
export function eventAttachments(values: readonly AttachmentValue[] | null): EventAttachment[] {
  return (values ?? []).map(({ id, filename, contentType, byteSize }) => ({ id, filename, contentType, byteSize }))
}
