// An application's own columns as types. Declare them by merging:
//
//   declare module 'threadmill' {
//     interface ChatExtension { teamId: string | null }
//   }

/** An application's own columns and associations of chats, for the type of `mill.models.Chat`. */
// biome-ignore lint/suspicious/noEmptyInterface: applications merge their declarations into it
export interface ChatExtension {}
/** An application's own columns and associations of messages. */
// biome-ignore lint/suspicious/noEmptyInterface: applications merge their declarations into it
export interface MessageExtension {}
/** An application's own columns and associations of tool calls. */
// biome-ignore lint/suspicious/noEmptyInterface: applications merge their declarations into it
export interface ToolCallExtension {}
/** An application's own columns and associations of queued messages. */
// biome-ignore lint/suspicious/noEmptyInterface: applications merge their declarations into it
export interface QueuedMessageExtension {}
/** An application's own columns and associations of usage entries. */
// biome-ignore lint/suspicious/noEmptyInterface: applications merge their declarations into it
export interface UsageExtension {}
