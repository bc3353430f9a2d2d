import type { ConnectOptions } from '../../../src/index.ts'

/** What a program of these tests is given: how to connect, and numbers of its own. */
export interface Input {
  readonly options: ConnectOptions & { readonly databaseUrl: string; readonly redisUrl: string }
  readonly numbers: Readonly<Record<string, number>>
}

/** What this process was started with. */
export function readInput(): Input {
  return JSON.parse(process.env.THREADMILL_TEST_INPUT ?? '{}')
}

/** One of its numbers. */
export function numberOf({ numbers }: Input, name: string): number {
  const value = numbers[name]
  if (value === undefined) throw new Error(`The program was given no ${name}`)
  return value
}

/** Hands something to the test that started this process. */
export function report(name: string, value: unknown): void {
  process.stdout.write(`${JSON.stringify({ name, value })}\n`)
}
