import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A network of one's own to a server of this machine, which can be made bad. */
export interface Link {
  readonly port: number
  /** The ports by which the server knows the connections that are open now. */
  ports(): readonly number[]
  /** From now on whatever passes takes this much longer, in ms, each way. */
  slow(ms: number): void
  /** Nothing passes until `mend`, then all of it does, late: connections stay open. */
  hold(): void
  /** Cuts every connection and lets none in until `mend`. */
  cut(): void
  mend(): void
  close(): Promise<void>
}

/** Starts a link to a port of 127.0.0.1. */
export async function startLink(target: number): Promise<Link> {
  const nears = new Set<Socket>()
  const fars = new Set<Socket>()
  const waiting = new Set<() => void>()
  let delayMs = 0
  let state: 'open' | 'held' | 'cut' = 'open'

  /** Passes on what comes, in its order. */
  const pass = (from: Socket, to: Socket) => {
    let last: Promise<unknown> = Promise.resolve()
    from.on('data', (data) => {
      const due = delayMs === 0 ? undefined : new Promise((done) => setTimeout(done, delayMs))
      last = last
        .then(() => due)
        .then(() => (state === 'held' ? new Promise<void>((go) => waiting.add(go)) : undefined))
        .then(() => void (to.writable && to.write(data)))
    })
    from.on('error', () => {})
    from.once('close', () => void last.then(() => to.destroy()))
  }

  const keep = (sockets: Set<Socket>, socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  }

  const server = createServer({ noDelay: true }, (near) => {
    if (state === 'cut') return void near.destroy()
    const far = connect({ port: target, host: '127.0.0.1', noDelay: true })
    keep(nears, near)
    keep(fars, far)
    pass(near, far)
    pass(far, near)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')

  const letGo = () => {
    for (const go of waiting) go()
    waiting.clear()
  }
  const destroyAll = () => {
    for (const near of nears) near.destroy()
    for (const far of fars) far.destroy()
  }
  return {
    port: (server.address() as AddressInfo).port,
    ports: () => [...fars].flatMap(({ localPort }) => localPort ?? []),
    slow(ms) {
      delayMs = ms
    },
    hold() {
      state = 'held'
    },
    cut() {
      state = 'cut'
      letGo()
      destroyAll()
    },
    mend() {
      state = 'open'
      delayMs = 0
      letGo()
    },
    async close() {
      state = 'cut'
      letGo()
      destroyAll()
      await new Promise((done) => server.close(done))
    },
  }
}

/** A URL that leads through a link. */
export function through(link: Link, url: string): string {
  const led = new URL(url)
  led.hostname = '127.0.0.1'
  led.port = String(link.port)
  return led.href
}
