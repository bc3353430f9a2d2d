/** The key of a chat's stream. The braces are a hash tag: in a cluster all keys of one chat lie on one node. */
export function streamKey(prefix: string, chatId: string): string {
  return `${prefix}:events:{${chatId}}`
}
