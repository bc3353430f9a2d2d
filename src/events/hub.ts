import type { Cluster, Redis } from 'ioredis'
import { Channel, type ChannelOptions } from './channel.ts'
import { readEntry } from './entry.ts'
import type { Mailbox } from './mailbox.ts'
import { blockingReads, type Entries, polledReads, type Reads } from './reads.ts'

export interface EventHubOptions extends ChannelOptions {
  /** What the keys begin with, as the publisher has it. */
  readonly prefix: string
  /** For commands that do not block. */
  readonly redis: Redis | Cluster
  /** Gives a connection for reads that block, which is disconnected at the end. Null: streams are polled over `redis`. */
  readonly connect: (() => Redis | Cluster) | null
  /** How long Redis holds a read that finds nothing, in ms. Default: 5000. */
  readonly blockMs?: number | undefined
  /** How long the connection outlives the last reader, in ms. Default: 1000. */
  readonly lingerMs?: number | undefined
}

/** Reads the streams of all watched chats of a process, each once, and hands the entries to whoever reads along. */
export interface EventHub {
  /**
   * Has a mailbox filled with what comes. Returns the id up to which the chat's stream was read already: what lies between
   * `after` and it does not come.
   */
  attach(chatId: string, after: string | null, mailbox: Mailbox): string | null
  detach(chatId: string, mailbox: Mailbox): void
  /** Ends all mailboxes, and the connection. A mailbox that is attached afterwards is ended at once. */
  close(): void
}

const BLOCK_MS = 5_000
const LINGER_MS = 1_000

/** Opens its connection with the first reader, and closes it soon after the last. */
export function eventHub(options: EventHubOptions): EventHub {
  const { connect, blockMs = BLOCK_MS, lingerMs = LINGER_MS } = options
  const channels = new Map<string, Channel>()
  let reads: Reads | null = null
  let lingering: NodeJS.Timeout | undefined
  let closed = false

  function startReading(): Reads {
    const common = { ...options, watched: () => channels.values(), hear }
    return connect === null ? polledReads(common) : blockingReads({ ...common, connect, blockMs })
  }

  function hear(channel: Channel, entries: Entries): void {
    for (const [id, fields] of entries) {
      // Whoever left and came back meanwhile has a channel that begins elsewhere.
      if (channels.get(channel.chatId) !== channel) return
      channel.hear(readEntry(channel.chatId, id, fields))
      if (channel.isEmpty) drop(channel)
    }
  }

  function drop(channel: Channel): void {
    channel.close()
    if (channels.get(channel.chatId) !== channel) return
    channels.delete(channel.chatId)
    clearTimeout(lingering)
    if (channels.size > 0) return
    lingering = setTimeout(stop, lingerMs)
    lingering.unref()
  }

  function stop(): void {
    reads?.stop()
    reads = null
  }

  return {
    attach(chatId, after, mailbox) {
      if (closed) {
        mailbox.end()
        return after
      }
      clearTimeout(lingering)
      const known = channels.get(chatId)
      const channel = known ?? new Channel(chatId, after, { ...options, onLost: drop })
      channels.set(chatId, channel)
      channel.add(mailbox)
      if (reads === null) reads = startReading()
      else if (known === undefined) reads.changed()
      return channel.position
    },
    detach(chatId, mailbox) {
      const channel = channels.get(chatId)
      channel?.remove(mailbox)
      if (channel?.isEmpty) drop(channel)
    },
    close() {
      closed = true
      for (const channel of channels.values()) channel.close()
      channels.clear()
      clearTimeout(lingering)
      stop()
    },
  }
}
