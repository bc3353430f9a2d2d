/**
 * The beginning of a body as text, `''` where it can't be read. The rest is not read, and its connection is closed.
 * @param maxBytes how much is read; a character that is cut by it reads as U+FFFD.
 */
export async function beginningOf(body: ReadableStream<Uint8Array> | null, maxBytes: number): Promise<string> {
  const source = body?.getReader()
  if (source === undefined) return ''
  const utf8 = new TextDecoder()
  let text = ''
  let left = maxBytes
  try {
    while (left > 0) {
      const { done, value } = await source.read()
      if (done) break
      text += utf8.decode(value.subarray(0, left), { stream: true })
      left -= value.length
    }
    return text + utf8.decode()
  } catch {
    return ''
  } finally {
    source.cancel().catch(() => {})
  }
}
