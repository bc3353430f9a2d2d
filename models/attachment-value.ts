/** One file of a message: what is known of it. Its bytes are stored under its digest. */
export type AttachmentValue = {
  /** A UUIDv7. */
  id: string
  /** What it is called. */
  filename: string
  /** Its media type. */
  contentType: string
  /** How many bytes it has. */
  byteSize: number
  /** SHA-256 of them, as hex: equal files are stored once. */
  digest: string
}
