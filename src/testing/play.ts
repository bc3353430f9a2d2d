import type { ServerResponse } from 'node:http'
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import type { Playback } from './playback.ts'
import type { Passage } from './reply.ts'
import type { Ending } from './request-log.ts'

/** Where a reply is played. */
export interface Stage {
  readonly response: ServerResponse
  /** Aborted when the client is gone or the server is closed. */
  readonly gone: AbortSignal
  /** The gates on the way, all of which every chunk has to pass. */
  readonly gates: readonly Passage[]
  readonly requestId: string
  /** Told how the request ended, just before the client can know it. */
  readonly ended: (ending: Ending) => void
}

/** Sends a reply. Returns when it is sent, or as soon as the client is gone. */
export async function play(playback: Playback, stage: Stage): Promise<void> {
  const { response, gone, gates } = stage
  try {
    for (const chunk of playback.chunks) {
      await turn(chunk.delayMs, stage)
      await write(playback, chunk.bytes, stage)
      for (const gate of gates) gate.passed()
    }
    const { bytes, delayMs, act } = playback.end
    if (act === 'hang') return await unlessGone(new Promise<never>(() => {}), gone)
    await turn(delayMs, stage)
    stage.ended(act === 'destroy' ? 'cut' : act === 'fail' ? 'failed' : 'answered')
    if (act === 'destroy') {
      response.destroy()
    } else {
      sendHeaders(playback, stage)
      response.end(bytes)
    }
    for (const gate of gates) gate.passed()
  } catch (error) {
    if (!gone.aborted) throw error
  }
}

/** Waits for every gate and then for the chunk's own delay. */
async function turn(delayMs: number, { gates, gone }: Stage): Promise<void> {
  for (const gate of gates) await unlessGone(gate.pass(), gone)
  if (delayMs > 0) await delay(delayMs, undefined, { signal: gone })
  gone.throwIfAborted()
}

async function write(playback: Playback, bytes: string | Uint8Array, stage: Stage): Promise<void> {
  sendHeaders(playback, stage)
  const written = new Promise<void>((resolve) => stage.response.write(bytes, () => resolve()))
  await unlessGone(written, stage.gone)
  await nextTurn() // a client in this process gets to read the chunk on its own
}

function sendHeaders({ status, headers }: Playback, { response, requestId }: Stage): void {
  if (!response.headersSent) response.writeHead(status, { 'x-request-id': requestId, ...headers })
}

function unlessGone<T>(work: Promise<T>, gone: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = (): void => reject(gone.reason)
    if (gone.aborted) return leave()
    gone.addEventListener('abort', leave, { once: true })
    work.then(resolve, reject).finally(() => gone.removeEventListener('abort', leave))
  })
}
