import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { JsonObject } from '../../../src/index.ts'
import { until } from '../../support/until.ts'

/** One call that a tool of some worker process made to the test. */
export interface Visit {
  /** What is asked of the desk; a tool's own name, mostly. */
  readonly errand: string
  readonly pid: number
  readonly chatId: string
  /** The idempotency key that the tool was given. */
  readonly key: string
  readonly args: JsonObject
  /** Lets the tool go on, with this for its result. */
  answer(result: unknown): void
}

/** Where the tools of worker processes call: it writes every visit down, and holds those that the test wants to hold. */
export interface Desk {
  readonly url: string
  readonly visits: readonly Visit[]
  /** Those for one errand. */
  of(errand: string): readonly Visit[]
  /** From now on visits for this errand wait for `answer`. */
  hold(errand: string): void
  /** Visits for this errand are answered at once again, and so are those that wait. */
  release(errand: string): void
  /** The nth visit for an errand, once it is there. */
  visit(errand: string, nth?: number): Promise<Visit>
  close(): Promise<void>
}

/** Starts a desk. What is not held is answered by `respond`, by default with the errand's name. */
export async function startDesk(respond: (visit: Visit) => unknown = (visit) => `${visit.errand} done`): Promise<Desk> {
  const visits: Visit[] = []
  const held = new Set<string>()
  const waiting = new Map<Visit, ServerResponse>()
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const visit: Visit = {
        ...JSON.parse(Buffer.concat(parts).toString()),
        answer: (result: unknown) => reply(waiting.get(visit) ?? response, result),
      }
      visits.push(visit)
      if (held.has(visit.errand)) waiting.set(visit, response)
      else reply(response, respond(visit))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const of = (errand: string) => visits.filter((visit) => visit.errand === errand)
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    visits,
    of,
    hold: (errand) => void held.add(errand),
    release(errand) {
      held.delete(errand)
      for (const visit of of(errand)) if (waiting.delete(visit)) visit.answer(respond(visit))
    },
    visit: (errand, nth = 1) => until(`visit ${nth} for ${errand}`, () => of(errand)[nth - 1], 30_000),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function reply(response: ServerResponse, result: unknown): void {
  if (response.writableEnded || response.destroyed) return
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ result: result ?? null }))
}

/** A desk for each test; `desk()` is that of the test that runs. */
export function useDesk(): () => Desk {
  let desk: Desk | undefined
  beforeEach(async () => {
    desk = await startDesk()
  })
  afterEach(() => desk?.close())
  return () => {
    if (desk === undefined) throw new Error('The desk opens with a test: use it inside one')
    return desk
  }
}
