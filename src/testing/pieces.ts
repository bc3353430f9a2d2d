/** How a text is cut for a stream: into that many pieces, or one piece a word. */
export type Chunking = number | 'words'

/** Cuts a text into about equal pieces, never inside a code point; fewer pieces when the text is too short. */
export function intoPieces(text: string, pieces: number): string[] {
  const points = Array.from(text)
  const count = Math.max(1, Math.min(Math.floor(pieces), points.length))
  const edge = (at: number): number => Math.round((at * points.length) / count)
  return Array.from({ length: count }, (_, at) => points.slice(edge(at), edge(at + 1)).join('')).filter((p) => p !== '')
}

/** Cuts a text before the white space that precedes each word, so that the pieces joined are the text. */
export const intoWords = (text: string): string[] => text.match(/\s*\S+|\s+$/g) ?? []

/** Cuts a text as asked; no pieces for an empty text. */
export const chop = (text: string, chunking: Chunking): string[] =>
  chunking === 'words' ? intoWords(text) : intoPieces(text, chunking)

/**
 * Cuts bytes into that many pieces of odd sizes (the last takes the rest), so that lines and multi-byte characters are
 * split in awkward places; fewer pieces when there are too few bytes.
 */
export function intoOddPieces(bytes: Uint8Array, pieces: number): Uint8Array[] {
  const even = Math.floor(bytes.length / Math.max(1, pieces))
  const size = Math.max(1, even % 2 === 0 ? even - 1 : even)
  const cut: Uint8Array[] = []
  let from = 0
  while (cut.length < pieces - 1 && from + size < bytes.length) {
    cut.push(bytes.subarray(from, from + size))
    from += size
  }
  return [...cut, bytes.subarray(from)]
}
