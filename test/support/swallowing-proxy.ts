import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** A TCP proxy on 127.0.0.1 that can swallow what is sent about something, as a router or a server that hangs does. */
export interface SwallowingProxy {
  /** `redis://127.0.0.1:port`. */
  readonly url: string
  /** From now on a connection that sends this text gets nothing any more, and stays open; '' = each of them does. */
  swallow(text: string): void
  /** Connections that are open stay as they are; new ones are passed on whatever they send. */
  passOn(): void
  close(): Promise<void>
}

/** Starts one before a server on this machine. */
export async function startSwallowingProxy(port: number): Promise<SwallowingProxy> {
  const sockets = new Set<Socket>()
  let swallowed: string | null = null
  const keep = (socket: Socket): Socket => {
    sockets.add(socket)
    return socket.on('error', () => {}).once('close', () => sockets.delete(socket))
  }
  const server = createServer((near) => {
    const far = keep(connect(port, '127.0.0.1'))
    let isMute = false
    keep(near)
      .on('data', (data) => {
        if (swallowed !== null && data.includes(swallowed)) isMute = true
        if (!isMute) far.write(data)
      })
      .once('close', () => far.destroy())
    far
      .on('data', (data) => {
        if (!isMute) near.write(data)
      })
      .once('close', () => near.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return {
    url: `redis://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`,
    swallow(text) {
      swallowed = text
    },
    passOn() {
      swallowed = null
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((done) => server.close(done))
    },
  }
}
