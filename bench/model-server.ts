import { createServer, type ServerResponse } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import * as z from 'zod'

// The model that every contestant asks: a process of its own, as cheap as can be, so that it is not what is measured. It
// asks for one tool call, and answers once it has the result. The path begins with the latency and the number of
// chunks: /300/500/chat/completions.

const requestSchema = z.object({
  stream: z.boolean().optional(),
  messages: z.array(z.object({ role: z.string() })),
})

const usage = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 }
const call = { id: '', type: 'function', function: { name: 'lookup', arguments: '{"key":"k1"}' } }
let calls = 0

const message = (toolCall: boolean) =>
  toolCall
    ? { role: 'assistant', content: null, tool_calls: [{ ...call, id: `call_${++calls}` }] }
    : { role: 'assistant', content: 'The value is 42.' }

function envelope(kind: string, choice: object, extra: object = {}): string {
  return JSON.stringify({ id: 'x', object: kind, created: 1, model: 'bench', choices: [choice], ...extra })
}

function answerWhole(response: ServerResponse, toolCall: boolean): void {
  response.setHeader('content-type', 'application/json')
  const finish = toolCall ? 'tool_calls' : 'stop'
  response.end(envelope('chat.completion', { index: 0, message: message(toolCall), finish_reason: finish }, { usage }))
}

function answerStreamed(response: ServerResponse, toolCall: boolean, chunks: number): void {
  response.setHeader('content-type', 'text/event-stream')
  const send = (delta: object, finish: string | null = null, extra: object = {}) =>
    response.write(`data: ${envelope('chat.completion.chunk', { index: 0, delta, finish_reason: finish }, extra)}\n\n`)
  send({ role: 'assistant', content: '' })
  if (toolCall) send({ tool_calls: [{ index: 0, ...call, id: `call_${++calls}` }] })
  else for (let at = 0; at < chunks; at++) send({ content: `word${at} ` })
  send({}, toolCall ? 'tool_calls' : 'stop', { usage })
  response.end('data: [DONE]\n\n')
}

const server = createServer(async (request, response) => {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  const { stream = false, messages } = requestSchema.parse(JSON.parse(Buffer.concat(parts).toString()))
  const [, latency = '0', chunks = '0'] = (request.url ?? '').split('/')
  if (Number(latency) > 0) await wait(Number(latency))
  const toolCall = messages.at(-1)?.role !== 'tool'
  if (stream) answerStreamed(response, toolCall, Number(chunks))
  else answerWhole(response, toolCall)
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.send?.(typeof address === 'object' && address !== null ? address.port : 0)
})
process.on('disconnect', () => process.exit(0))
