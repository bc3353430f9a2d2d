import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { expect } from 'chai'
import { until } from '../support/until.ts'
import { startProxy, type TcpProxy } from './proxy.ts'

/** Somebody at the other side of the proxy. */
interface Caller {
  readonly socket: Socket
  /** What came back so far. */
  heard(): string
}

describe('The network of a chaos run', () => {
  let server: Server
  let proxy: TcpProxy
  let callers: Socket[] = []

  beforeEach(async () => {
    server = createServer((socket) => socket.on('error', () => {}).pipe(socket)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    proxy = await startProxy(typeof address === 'object' && address ? address.port : 0)
  })
  afterEach(async () => {
    for (const socket of callers) socket.destroy()
    callers = []
    await proxy.close()
    await new Promise((done) => server.close(done))
  })

  const call = async (): Promise<Caller> => {
    const socket = connect(proxy.port, '127.0.0.1')
    callers.push(socket)
    let text = ''
    socket
      .on('error', () => {})
      .on('data', (part) => {
        text += part.toString()
      })
    await once(socket, 'connect')
    return { socket, heard: () => text }
  }
  const hears = (caller: Caller, text: string) => until(`it hears ${text}`, () => caller.heard() === text)

  it('passes on what is sent, in order, and slowly where it is slow (E160)', async () => {
    const caller = await call()
    caller.socket.write('a')
    await hears(caller, 'a')
    await proxy.set({ kind: 'slow', delayMs: 60 })
    const begun = performance.now()
    caller.socket.write('b')
    await proxy.set({ kind: 'slow', delayMs: 1 })
    await hears(caller, 'ab')
    await proxy.set({ kind: 'slow', delayMs: 60 })
    caller.socket.write('c')
    await hears(caller, 'abc')
    // There and back.
    expect(performance.now() - begun).to.be.at.least(110)
  })

  it('passes nothing on where it is cut, and ends what lost something afterwards (E160)', async () => {
    const [used, idle] = [await call(), await call()]
    used.socket.write('a')
    idle.socket.write('a')
    await Promise.all([hears(used, 'a'), hears(idle, 'a')])
    let isCut = false
    await until('the one that was used is ended', async () => {
      isCut = !isCut
      await proxy.set({ kind: isCut ? 'cut' : 'pass' })
      // It arrives while the network is cut, unless this machine is slow.
      if (isCut) used.socket.write('b')
      return used.socket.destroyed
    })
    await proxy.set({ kind: 'pass' })
    idle.socket.write('b')
    await hears(idle, 'ab')
  })

  it('refuses connections and ends those that are open, until it passes again (E160)', async () => {
    const caller = await call()
    const ended = once(caller.socket, 'close')
    await proxy.set({ kind: 'refuse' })
    await ended
    const refused = connect(proxy.port, '127.0.0.1')
    const [error] = await once(refused, 'error')
    expect(error).to.include({ code: 'ECONNREFUSED' })
    await proxy.set({ kind: 'pass' })
    const again = await call()
    again.socket.write('a')
    await hears(again, 'a')
  })
})
