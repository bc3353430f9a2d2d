import OpenAI from 'openai'
import type { ChatCompletionMessageParam, ChatCompletionTool } from 'openai/resources/chat/completions'
import { type Contestant, ownCpuMs } from './contestant.ts'
import { historyOf, type Workload } from './workloads.ts'

// The floor: the client alone, with nothing kept anywhere.

const tools: ChatCompletionTool[] = [
  {
    type: 'function',
    function: {
      name: 'lookup',
      description: 'Looks a key up.',
      parameters: { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] },
    },
  },
]

export const bare: Contestant = {
  name: 'bare openai client',
  async prepare(workload, { modelUrl }) {
    const client = new OpenAI({ apiKey: 'bench', baseURL: modelUrl, maxRetries: 0 })
    const history = historyOf(workload)
    return {
      async turn(at) {
        const messages: ChatCompletionMessageParam[] = [
          { role: 'system', content: 'You look things up.' },
          ...history,
          { role: 'user', content: `Look up k${at}` },
        ]
        const { id, text } = await ask(client, workload, messages)
        if (id === null) throw new RangeError(`Expected a tool call, not ${text}`)
        messages.push(
          {
            role: 'assistant',
            content: null,
            tool_calls: [{ id, type: 'function', function: { name: 'lookup', arguments: '{"key":"k1"}' } }],
          },
          { role: 'tool', tool_call_id: id, content: '42' },
        )
        const answer = await ask(client, workload, messages)
        if (answer.text === '') throw new RangeError('Expected an answer')
      },
      cpuMs: async () => ownCpuMs(),
      close: async () => {},
    }
  },
}

async function ask(
  client: OpenAI,
  { chunks }: Workload,
  messages: ChatCompletionMessageParam[],
): Promise<{ id: string | null; text: string }> {
  if (chunks === 0) {
    const answer = await client.chat.completions.create({ model: 'bench', messages, tools })
    const message = answer.choices[0]?.message
    return { id: message?.tool_calls?.[0]?.id ?? null, text: message?.content ?? '' }
  }
  let id: string | null = null
  let text = ''
  for await (const chunk of await client.chat.completions.create({ model: 'bench', messages, tools, stream: true })) {
    const delta = chunk.choices[0]?.delta
    id ??= delta?.tool_calls?.[0]?.id ?? null
    text += delta?.content ?? ''
  }
  return { id, text }
}
