import type { Cluster, Redis } from 'ioredis'
import { UnreachableError } from '../errors.ts'
import { ended, pause } from './patience.ts'

type Client = Redis | Cluster

/** A connection that is used for one blocking command after another, and that is replaced when it is lost for good. */
export interface BlockingConnection {
  readonly ended: boolean
  /** Runs a command, again and again until it succeeds. Resolves to `ended` once the connection was ended. */
  ask<T>(command: (client: Client) => Promise<T>): Promise<T | typeof ended>
  /** Disconnects at once; a command that is under way is given up. Safe to call again. */
  end(): void
}

/** Opens a connection at once. `silenceMs` is how long an answer may take on a connection that says that it is ready. */
export function blockingConnection(
  connect: () => Client,
  { silenceMs, onError }: { readonly silenceMs: number; readonly onError: (error: Error) => void },
): BlockingConnection {
  const ending = new AbortController()
  let client = open()
  let lost = false

  function open(): Client {
    const opened = connect()
    // Without a listener ioredis writes to the console; it reconnects by itself.
    opened.on('error', onError)
    return opened
  }

  function answer<T>(command: (client: Client) => Promise<T>): Promise<T | typeof ended> {
    const asked = command(client)
    return new Promise((resolve, reject) => {
      const stop = () => settle(() => resolve(ended))
      // A peer that vanished without a word leaves a read blocked for ever: no answer comes, and no error either.
      const watch = setInterval(() => {
        if (client.status !== 'ready') return
        lost = true
        client.disconnect()
        settle(() => reject(new UnreachableError(`Redis was silent for ${silenceMs} ms: connecting again`)))
      }, silenceMs)
      const settle = (finish: () => void) => {
        clearInterval(watch)
        ending.signal.removeEventListener('abort', stop)
        finish()
      }
      ending.signal.addEventListener('abort', stop)
      asked.then(
        (value) => settle(() => resolve(value)),
        (error) => settle(() => reject(error)),
      )
    })
  }

  async function ask<T>(command: (client: Client) => Promise<T>): Promise<T | typeof ended> {
    for (let failures = 0; !ending.signal.aborted; failures++) {
      try {
        if (failures > 0) await pause(failures, ending.signal)
        if (lost || client.status === 'end') client = open()
        lost = false
        return await answer(command)
      } catch (error) {
        if (!ending.signal.aborted) onError(error instanceof Error ? error : new Error(String(error)))
      }
    }
    return ended
  }

  function end(): void {
    if (ending.signal.aborted) return
    ending.abort()
    client.disconnect()
  }

  return {
    ask,
    end,
    get ended() {
      return ending.signal.aborted
    },
  }
}
