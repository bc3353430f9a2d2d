import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ConfigurationError } from '../errors.ts'
import type { BoardHandler } from './board.ts'
import { isLoopback, isSamePassword, type Refusal, refusedHost } from './guard.ts'

export interface BoardServerOptions {
  readonly host: string
  /** 0 = any that is free. */
  readonly port: number
  /** Null = none, which only this machine's own addresses can go without. */
  readonly password: string | null
}

export interface BoardServer {
  readonly url: string
  close(): Promise<void>
}

/**
 * Serves the board by itself, behind a password where there is one.
 * @throws {ConfigurationError} without a password for other machines, or when the port can't be had.
 */
export async function serveBoard(board: BoardHandler, options: BoardServerOptions): Promise<BoardServer> {
  const { host, password } = options
  if (password === null && !isLoopback(host)) {
    throw new ConfigurationError(
      `The board can't be served to other machines (--host ${host}) without a password: set THREADMILL_BOARD_PASSWORD.`,
    )
  }
  const { default: auth } = await import('basic-auth')
  const server = createServer((request, response) => {
    const refusal = password === null ? refusedHost(request.headers) : refusedLogin(auth(request)?.pass, password)
    if (refusal === null) return board(request, response, () => response.writeHead(404).end())
    const asking = refusal.status === 401 ? { 'www-authenticate': 'Basic realm="Threadmill", charset="UTF-8"' } : {}
    response.writeHead(refusal.status, { 'content-type': 'text/plain; charset=utf-8', ...asking })
    response.end(`${refusal.text}\n`)
  })
  await listen(server, options)
  const address = server.address() as AddressInfo
  return {
    url: `http://${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}/`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function listen(server: Server, { host, port }: BoardServerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const problem = `The board can't be served at ${host}:${port} (${error.code}): name another --host or --port.`
      reject(new ConfigurationError(problem, { cause: error }))
    })
    server.listen(port, host, resolve)
  })
}

function refusedLogin(guess: string | undefined, password: string): Refusal | null {
  if (guess !== undefined && isSamePassword(guess, password)) return null
  return { status: 401, text: 'The board wants its password.' }
}
