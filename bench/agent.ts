import { type Agent, defineAgent, defineTool } from 'threadmill'
import * as z from 'zod'

/** The agent of the benchmark; `onAnswered` is told of each turn's end. */
export function benchAgent(streaming: boolean, onAnswered: (chatId: string) => void): Agent {
  return defineAgent({
    name: 'bench',
    model: 'bench',
    instructions: 'You look things up.',
    streaming,
    tools: [
      defineTool({
        name: 'lookup',
        description: 'Looks a key up.',
        parameters: z.object({ key: z.string() }),
        execute: () => '42',
      }),
    ],
    onTurnEnd(chat, outcome) {
      if (outcome.kind !== 'answered') throw new RangeError(`A turn of the benchmark was ${outcome.kind}`)
      onAnswered(chat.id)
    },
  })
}
