import type { ErrorFacts, Observation } from '../../src/index.ts'

const run = { chatId: 'chat', turn: 2, claimToken: 7 }

/** Facts of an error, for examples. */
export const someError: ErrorFacts = {
  name: 'RateLimitError',
  code: 'provider.rate_limit',
  retryable: true,
  status: 429,
  requestId: 'req-1',
  message: null,
}

export const modelEnded: Extract<Observation, { type: 'model.ended' }> = {
  type: 'model.ended',
  ...run,
  messageId: 'message',
  operation: 'chat',
  provider: 'openai',
  model: 'gpt',
  responseModel: 'gpt-1',
  responseId: 'response',
  status: 'succeeded',
  attempt: 1,
  inputTokens: 100,
  outputTokens: 20,
  cacheReadTokens: 30,
  cacheWriteTokens: 0,
  thinkingTokens: null,
  costUsd: '0.0015',
  firstTokenMs: 300,
  durationMs: 1_500,
  finishReason: 'stop',
  error: null,
  content: null,
}

export const toolEnded: Extract<Observation, { type: 'tool.ended' }> = {
  type: 'tool.ended',
  ...run,
  tool: 'refund',
  toolCallId: 'call',
  outcome: 'succeeded',
  executed: true,
  durationMs: 250,
  error: null,
  arguments: null,
  result: null,
}

export const runEnded: Extract<Observation, { type: 'run.ended' }> = {
  type: 'run.ended',
  ...run,
  outcome: 'answered',
  agent: 'support',
  moves: 3,
  durationMs: 2_000.4,
  error: null,
  retryInMs: null,
}
