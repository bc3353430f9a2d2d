import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { z } from 'zod'

/** The servers, in the order in which they are tried. */
export const serverKinds = ['redis-server', 'valkey-server', 'js-redis-server'] as const
/** Which server runs. */
export type ServerKind = (typeof serverKinds)[number]

/** The check of an address that another process wrote. */
export const addressSchema = z.object({
  kind: z.enum(serverKinds),
  port: z.int().min(1).max(65_535),
  /** The process that started the server, and whose end ends it. */
  ownerPid: z.int().positive(),
  serverPid: z.int().positive(),
})

/** Where the embedded Redis of a data directory listens, and whose it is; always on 127.0.0.1. */
export type Address = z.infer<typeof addressSchema>

const PING_MS = 1_000

const fileOf = (dataDir: string) => join(dataDir, 'redis.json')

/** The address that a data directory holds, or null if it holds none that can be read. Whether it is alive, it doesn't say. */
export async function readAddress(dataDir: string): Promise<Address | null> {
  try {
    return addressSchema.parse(JSON.parse(await readFile(fileOf(dataDir), 'utf8')))
  } catch {
    return null
  }
}

/** Stores the address; readers see the old file or the new one, never a half. */
export async function writeAddress(dataDir: string, address: Address): Promise<void> {
  const draft = `${fileOf(dataDir)}.${process.pid}`
  await writeFile(draft, `${JSON.stringify(address)}\n`, { mode: 0o600 })
  await rename(draft, fileOf(dataDir))
}

/** Removes the address if it is still that of this server. */
export async function removeAddress(dataDir: string, serverPid: number): Promise<void> {
  const current = await readAddress(dataDir)
  if (current?.serverPid === serverPid) await rm(fileOf(dataDir), { force: true })
}

/** Whether a process exists, one of another user included. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Whether both processes of an address live and its port answers as a Redis does, within a second. */
export async function isServing({ ownerPid, serverPid, port }: Address): Promise<boolean> {
  return isAlive(ownerPid) && isAlive(serverPid) && (await ask(port, 'PING')).startsWith('+PONG')
}

/** Sends one command and resolves to the beginning of the answer, '' if there is none within a second. */
export function ask(port: number, command: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = createConnection({ host: '127.0.0.1', port })
    const end = (answer: string) => {
      socket.destroy()
      resolve(answer)
    }
    socket.setTimeout(PING_MS, () => end(''))
    socket.once('error', () => end(''))
    socket.once('connect', () => socket.write(`${command}\r\n`))
    socket.once('data', (data) => end(data.toString('latin1')))
  })
}
