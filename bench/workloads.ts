/** What is asked of every contestant alike. One turn = a user message, a tool call, its result, the answer: two model calls. */
export interface Workload {
  readonly name: string
  /** How many turns run at once. */
  readonly concurrency: number
  readonly turns: number
  /** Turns before the timed ones, until the code is compiled. */
  readonly warmup: number
  /** Text chunks of the final answer; 0 = answers that are not streamed. */
  readonly chunks: number
  /** How long the model takes for each call, in ms. */
  readonly latencyMs: number
  /** Messages that each chat holds already. */
  readonly history: number
}

const plain = { warmup: 150, chunks: 0, latencyMs: 0, history: 0 }

export const workloads: readonly Workload[] = [
  { ...plain, name: 'turn', concurrency: 16, turns: 240 },
  { ...plain, name: 'c1', concurrency: 1, turns: 60 },
  { ...plain, name: 'stream', concurrency: 4, turns: 80, chunks: 500 },
  { ...plain, name: 'hist', concurrency: 4, turns: 80, history: 1_000 },
  { ...plain, name: 'lat300', concurrency: 64, turns: 256, latencyMs: 300 },
]

/** The messages that chats begin with, alike for every contestant. */
export function historyOf({ history }: Workload): { role: 'user' | 'assistant'; content: string }[] {
  return Array.from({ length: history }, (_, at) => ({
    role: at % 2 === 0 ? 'user' : 'assistant',
    content: `Message ${at}: ${'the quick brown fox jumps over the lazy dog '.repeat(3)}`,
  }))
}
