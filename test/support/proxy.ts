import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'

/** A proxy on 127.0.0.1 between a client and its server, to be slow or away in the server's place. */
export interface TcpProxy {
  readonly port: number
  /** How many packets it has passed on to the server: of a database client a packet is a statement. */
  readonly packets: number
  /** Cuts what is open and refuses new connections. */
  cut(): Promise<void>
  /** Takes connections again, on the same port. */
  mend(): Promise<void>
  /** Ends it for good. */
  close(): Promise<void>
}

/** @param delayMs how long each packet of a client is held back, in ms, in the order of its connection. Default: not at all. */
export async function startProxy(port: number, delayMs: () => number = () => 0): Promise<TcpProxy> {
  const sockets = new Set<Socket>()
  let packets = 0
  const keep = (socket: Socket) => {
    sockets.add(socket)
    return socket.on('error', () => {}).once('close', () => sockets.delete(socket))
  }
  const serve = (near: Socket) => {
    const far = keep(connect(port, '127.0.0.1'))
    keep(near)
    far.pipe(near)
    let last = Promise.resolve()
    near.on('data', (packet) => {
      last = last.then(async () => {
        const held = delayMs()
        if (held > 0) await wait(held)
        packets++
        far.write(packet)
      })
    })
    near.once('close', () => far.destroy())
    far.once('close', () => near.destroy())
  }
  let server: Server | null = createServer(serve).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const own = typeof address === 'object' && address ? address.port : 0
  const cut = async () => {
    for (const socket of sockets) socket.destroy()
    const closing = server
    server = null
    if (closing !== null) await new Promise((done) => closing.close(done))
  }
  return {
    port: own,
    get packets() {
      return packets
    },
    cut,
    async mend() {
      server = createServer(serve).listen(own, '127.0.0.1')
      await once(server, 'listening')
    },
    close: cut,
  }
}
