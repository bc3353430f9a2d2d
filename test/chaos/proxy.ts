import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

/** How a proxy treats what passes. */
export type Passage =
  | { readonly kind: 'pass' }
  /** Each piece is held up for so long, on its way there and on its way back. */
  | { readonly kind: 'slow'; readonly delayMs: number }
  /** Nothing arrives, and nobody is told. */
  | { readonly kind: 'cut' }
  /** Connections are ended, and new ones refused. */
  | { readonly kind: 'refuse' }

/** A TCP proxy on 127.0.0.1, which can be slow, deaf or not there. */
export interface TcpProxy {
  readonly port: number
  /** Changes how everything is treated from now on, also on connections that are open. Whatever was cut is ended when it is over. */
  set(passage: Passage): Promise<void>
  close(): Promise<void>
}

interface Pair {
  readonly near: Socket
  readonly far: Socket
  /** Its bytes were lost on the way: it is of no use any more. */
  isCut: boolean
}

export async function startProxy(target: number): Promise<TcpProxy> {
  const pairs = new Set<Pair>()
  let passage: Passage = { kind: 'pass' }
  const open = (near: Socket) => {
    const pair: Pair = { near, far: connect(target, '127.0.0.1'), isCut: false }
    pairs.add(pair)
    const end = () => {
      pairs.delete(pair)
      near.destroy()
      pair.far.destroy()
    }
    for (const socket of [near, pair.far]) socket.setNoDelay(true).on('error', end).once('close', end)
    const carry = (from: Socket, to: Socket) => {
      // Those that are held up are waited for by the ones behind them.
      let last = 0
      from.on('data', (piece) => {
        if (passage.kind === 'cut') pair.isCut = true
        if (pair.isCut) return
        const now = performance.now()
        const due = Math.max(passage.kind === 'slow' ? now + passage.delayMs : now, last)
        if (due <= now) to.write(piece)
        else setTimeout(() => to.write(piece), due - now)
        last = due
      })
    }
    carry(near, pair.far)
    carry(pair.far, near)
  }
  let server: Server | null = createServer(open).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const endAll = (which: (pair: Pair) => boolean) => {
    for (const pair of [...pairs]) if (which(pair)) pair.near.destroy()
  }
  const stop = async () => {
    const stopping = server
    server = null
    const stopped = stopping === null ? null : new Promise((done) => stopping.close(done))
    endAll(() => true)
    await stopped
  }
  return {
    port,
    async set(next) {
      passage = next
      if (next.kind === 'refuse') return stop()
      if (next.kind !== 'cut') endAll(({ isCut }) => isCut)
      if (server !== null) return
      server = createServer(open).listen(port, '127.0.0.1')
      await once(server, 'listening')
    },
    close: stop,
  }
}
