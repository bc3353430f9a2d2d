import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { ConfigurationError } from '../errors.ts'

/** What one look at a part came to, in a word or two: `ok`, or what is wrong with it. */
export type CheckResults = Readonly<Record<string, string>>

/** What a probe answers from. Nothing here may reject, or take long. */
export interface ProbeSource {
  /** Whether this process does what it should, whatever it depends on does. */
  live(): CheckResults
  /** Whether it can take work now. */
  ready(): Promise<CheckResults>
  /** The metrics as text, or null where there are none. */
  metrics(): Promise<{ readonly text: string; readonly contentType: string } | null>
}

/** Where a probe listens. */
export interface ProbeOptions {
  /** 0 = any that is free. */
  readonly port: number
  /** Default `127.0.0.1`: nobody outside this machine, or its pod, can ask. */
  readonly host?: string | undefined
}

/** A small HTTP server for whoever watches this process. */
export interface Probe {
  /** The port that it listens on. */
  readonly port: number
  /** `http://host:port`. */
  readonly url: string
  /** Safe to call again. */
  close(): Promise<void>
}

/**
 * @param onClose called once, when it is closed.
 * @throws {ConfigurationError} when the address can't be listened on.
 */
export async function openProbe(
  { port, host = '127.0.0.1' }: ProbeOptions,
  source: ProbeSource,
  onClose: () => void = () => {},
): Promise<Probe> {
  const server = createServer((request, response) => void answer(request, response, source))
  await listen(server, port, host)
  const address = server.address()
  const bound = typeof address === 'object' && address !== null ? address.port : port
  let closed: Promise<void> | null = null
  return {
    port: bound,
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    close() {
      closed ??= new Promise((resolve) => {
        onClose()
        server.close(() => resolve())
        server.closeAllConnections()
      })
      return closed
    },
  }
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        new ConfigurationError(
          `The probe can't listen on ${host}, port ${port} (${error.code ?? 'error'}): choose another port or host.`,
          { cause: error },
        ),
      ),
    )
    server.listen(port, host, resolve)
  })
}

async function answer(request: IncomingMessage, response: ServerResponse, source: ProbeSource): Promise<void> {
  const send = (status: number, type: string, body: string) => {
    response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' })
    response.end(request.method === 'HEAD' ? '' : body)
  }
  const checked = (checks: CheckResults) => {
    const ok = Object.values(checks).every((result) => result === 'ok')
    send(ok ? 200 : 503, 'application/json', `${JSON.stringify({ status: ok ? 'ok' : 'failing', checks })}\n`)
  }
  const plain = (status: number, text: string) => send(status, 'text/plain; charset=utf-8', `${text}\n`)
  try {
    if (request.method !== 'GET' && request.method !== 'HEAD') return plain(405, 'Only GET and HEAD')
    switch (request.url?.split('?')[0]) {
      case '/live':
        return checked(source.live())
      case '/ready':
        return checked(await source.ready())
      case '/metrics': {
        const metrics = await source.metrics()
        if (metrics === null) return plain(404, 'No metrics: connect with metrics: true')
        return send(200, metrics.contentType, metrics.text)
      }
      default:
        return plain(404, 'There are /live, /ready and /metrics')
    }
  } catch {
    plain(500, 'The probe failed')
  }
}
