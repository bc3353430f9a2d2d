/** Most bytes of one text, as UTF-8: what every database takes in one statement as it is delivered. */
export const TEXT_LIMIT_BYTES = 8 * 1024 * 1024

/** Whether a text can be stored whole. */
export function isWithinLimit(text: string): boolean {
  // No UTF-16 unit takes more than three bytes, so most texts need no counting.
  return text.length * 3 <= TEXT_LIMIT_BYTES || Buffer.byteLength(text) <= TEXT_LIMIT_BYTES
}

/** A text that can be stored: too long a one is cut between two characters, and says so at its end. */
export function cutToLimit(text: string): string {
  if (isWithinLimit(text)) return text
  const bytes = Buffer.from(text)
  const mark = (kept: number) => `\n[Cut here: ${kept} of ${bytes.length} bytes.]`
  let end = TEXT_LIMIT_BYTES - Buffer.byteLength(mark(TEXT_LIMIT_BYTES))
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end) + mark(end)
}
