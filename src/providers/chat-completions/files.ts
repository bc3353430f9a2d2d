import type { JsonObject } from '../../../models/rows.ts'
import type { RequestAttachment } from '../provider.ts'

const images = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']
const audio: Readonly<Record<string, string>> = {
  'audio/wav': 'wav',
  'audio/x-wav': 'wav',
  'audio/mpeg': 'mp3',
  'audio/mp3': 'mp3',
}
const texts = /^text\/|^application\/(json|xml|yaml|x-yaml|javascript|typescript|sql|toml|x-sh)$|\+(json|xml)$/

/**
 * How a server takes documents: `file`, as OpenAI does, PDFs alone; or `file_url`, as Perplexity does, which holds an address or, as here,
 * the bytes.
 */
export type DocumentForm = 'file' | 'file_url'

const documents: Readonly<Record<DocumentForm, readonly string[]>> = {
  file: ['application/pdf'],
  file_url: [
    'application/pdf',
    'application/msword',
    'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
    'application/rtf',
    'text/rtf',
  ],
}

/** Whether Chat Completions, as a server speaks them, have a part for files of that type. */
export function supportsFile(contentType: string, form: DocumentForm = 'file'): boolean {
  const type = contentType.toLowerCase()
  return images.includes(type) || type in audio || documents[form].includes(type) || texts.test(type)
}

/** A file as a part of a message: images, sounds and documents as such, texts under a line with their name. */
export function renderFile({ filename, contentType, base64 }: RequestAttachment, form: DocumentForm): JsonObject {
  const type = contentType.toLowerCase()
  if (images.includes(type)) return { type: 'image_url', image_url: { url: `data:${type};base64,${base64}` } }
  // It takes no prefix that says what the bytes are.
  if (form === 'file_url' && documents.file_url.includes(type)) return { type: 'file_url', file_url: { url: base64 } }
  const format = audio[type]
  if (format !== undefined) return { type: 'input_audio', input_audio: { data: base64, format } }
  if (texts.test(type)) {
    return { type: 'text', text: `${filename}:\n\n${Buffer.from(base64, 'base64').toString('utf8')}` }
  }
  return { type: 'file', file: { filename, file_data: `data:${type};base64,${base64}` } }
}
