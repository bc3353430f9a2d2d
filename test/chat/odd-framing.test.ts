import { expect } from 'chai'
import { rawSse } from '../../src/testing/index.ts'
import { onEachDatabase } from '../support/databases.ts'
import { useBench } from '../support/mills.ts'
import { usageRows } from './support/rows.ts'

const body = [
  ': warming up\r\n\r\n',
  'data:{"id":"","choices":[],"model":"","prompt_filter_results":[]}\r\n\r\n',
  'data: \r\n\r\n',
  'data: {"id":"cc-b19","choices":[{"index":0,"delta":{"content":"Go"},"finish_reason":null}]}\r\n\r\n',
  ': ping\n',
  'data:{"id":"cc-b19","choices":[{"index":0,"delta":{"content":"od"},"finish_reason":"stop"}]}\n\n',
  'data: {"id":"cc-b19","choices":[],"usage":{"prompt_tokens":4,"completion_tokens":2,"total_tokens":6}}\n\n',
  'data:[DONE]\n\n',
].join('')

onEachDatabase('A stream with comments, CRLF, blank data and events without a choice', (kind) => {
  const bench = useBench(kind)

  for (const [how, pieces] of [
    ['in one write', 1],
    ['byte by byte', body.length],
  ] as const) {
    it(`is read as what it says, sent ${how} (B19)`, async () => {
      await bench.script([rawSse(body, { pieces })])
      const troubles: string[] = []
      const mill = await bench.connect({
        onObservation: ({ type }) => {
          if (/trouble|failed|unwritten/.test(type)) troubles.push(type)
        },
      })
      const chat = await mill.chats.create()
      const answer = await chat.ask('How is it?')
      expect([answer?.content, answer?.finishReason, answer?.toolCalls]).to.eql(['Good', 'stop', []])
      const entries = await usageRows(mill, chat)
      const told = entries.map(({ status, inputTokens, outputTokens }) => [status, inputTokens, outputTokens])
      expect(told).to.eql([['succeeded', 4, 2]])
      expect([await chat.failure(), troubles]).to.eql([null, []])
    })
  }
})
