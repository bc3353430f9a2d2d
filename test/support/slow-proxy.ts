import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'

/** A TCP proxy on 127.0.0.1 that holds each packet of its clients back for a while; of a database client a packet is a statement. */
export interface SlowProxy {
  readonly port: number
  /** How many packets were held back for at least half of the longest time so far. */
  readonly slow: number
  close(): Promise<void>
}

/**
 * @param delayMs says for each packet how long it is held back, in ms; each connection keeps its order.
 * @param longestMs the longest that `delayMs` says.
 */
export async function startSlowProxy(port: number, delayMs: () => number, longestMs: number): Promise<SlowProxy> {
  const sockets = new Set<Socket>()
  let slow = 0
  const keep = (socket: Socket) => {
    sockets.add(socket)
    return socket.on('error', () => {}).once('close', () => sockets.delete(socket))
  }
  const server = createServer((near) => {
    const far = keep(connect(port, '127.0.0.1'))
    keep(near)
    far.pipe(near)
    let last = Promise.resolve()
    near.on('data', (packet) => {
      last = last.then(async () => {
        const held = delayMs()
        if (held >= longestMs / 2) slow++
        if (held > 0) await wait(held)
        far.write(packet)
      })
    })
    near.once('close', () => far.destroy())
    far.once('close', () => near.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    get slow() {
      return slow
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((done) => server.close(done))
    },
  }
}
