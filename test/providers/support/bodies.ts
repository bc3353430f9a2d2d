import { readConversation, recordedFiles } from '../../wire/recordings.ts'
import { chunk, sse } from '../scripted-server.ts'

const usage = { prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 3 } }
const piece = (index: number, args: string, head: object = {}) =>
  chunk({ tool_calls: [{ index, ...head, function: { arguments: args, ...(index === 1 ? { name: 'rate' } : {}) } }] })

/** Small bodies as servers of several kinds send them. */
const handmade = [
  sse(chunk({ role: 'assistant', content: '' }), chunk({ content: 'The sum ' }), chunk({ content: 'is 4 é😀' }), {
    ...chunk({}, { finish_reason: 'stop' }),
    usage,
  }) + sse('[DONE]'),
  sse(
    chunk({ tool_calls: [{ index: 0, id: 'a', function: { name: 'temp', arguments: '' } }] }),
    piece(0, '{"ci'),
    piece(0, 'ty":"Rome"}'),
    piece(1, '{}', { id: 'b', extra_content: { google: { thought_signature: 'sig' } } }),
    chunk({}, { finish_reason: 'tool_calls' }),
    { choices: [], usage },
    '[DONE]',
  ),
  sse(
    chunk({ reasoning_content: 'Hm. ', reasoning_details: [{ type: 'reasoning.text', index: 0, text: 'Hm. ' }] }),
    chunk({ reasoning: 'So.', reasoning_details: [{ type: 'reasoning.text', index: 0, text: 'So.', signature: 's' }] }),
    chunk({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Now' }] }] }),
    chunk({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: ' then' }], closed: true }] }),
    chunk({
      content: [
        { type: 'text', text: 'Yes' },
        { type: 'reference', reference_ids: [1] },
      ],
    }),
    chunk(
      { refusal: 'No', annotations: [{ type: 'url_citation', url: 'https://x.example' }] },
      { finish_reason: 'stop' },
    ),
  ),
  ': hello\r\n\r\ndata:{"choices":[{"delta":{"content":"a"}}]}\r\n\r\nevent: ping\r\ndata: {}\r\n\r\ndata: [DONE]\r\n\r\n',
  `data: ${JSON.stringify(chunk({ content: 'Half' }))}\n\nevent: error\ndata: {"error":{"message":"down","code":500}}\n\n`,
  JSON.stringify({
    id: 'cc-1',
    model: 'm-1',
    choices: [
      {
        index: 0,
        message: { content: 'Hi', tool_calls: [{ id: 'a', function: { name: 'f', arguments: { a: 1 } } }] },
        finish_reason: 'stop',
      },
    ],
    usage,
    citations: ['https://x.example'],
  }),
  JSON.stringify([{ error: { code: 429, message: 'slow down', type: 'rate_limit_error' } }]),
  '<html><head><title>502</title></head><body><script>x</script>Bad gateway</body></html>',
]

const LARGEST_RECORDED = 6_000

/** What servers have sent: made by hand, and the shorter ones of the recordings where these are at hand. */
export function sentBodies(): Uint8Array[] {
  const recorded = recordedFiles().flatMap((file) =>
    readConversation(file).exchanges.map(
      ({ response }) => response.sse ?? response.raw ?? JSON.stringify(response.body),
    ),
  )
  const short = recorded.filter((body) => body.length <= LARGEST_RECORDED)
  return [...handmade, ...short].map((body) => Buffer.from(body))
}
