// A process that serves js-redis-server on the port it is given, until its standard input closes. Plain JavaScript, since
// it is started often and a loader takes longer than the server.
import { Server } from 'node:net'

// It would listen on every interface, so listening is narrowed to this machine first.
const listen = Server.prototype.listen
Server.prototype.listen = function (port, ...rest) {
  if (typeof port !== 'number') return listen.call(this, port, ...rest)
  return listen.call(this, { port, host: '127.0.0.1' }, ...rest.filter((argument) => typeof argument === 'function'))
}

const { createRedisServer } = await import('js-redis-server')
process.stdin.resume().once('close', () => process.exit(0))
await createRedisServer({ port: Number(process.argv[2]) })
process.stdout.write('Ready to accept connections\n')
