import { sayResults } from './demo-results.ts'
import type { Wish } from './demo-wishes.ts'
import { readWishes } from './demo-wishes.ts'
import { text, toolCalls } from './replies.ts'
import type { Reply, ReplyFunction, ReplyToolCall } from './reply.ts'
import type { LoggedRequest } from './request-log.ts'
import type { WireMessage, WireTool } from './wire.ts'
import { textOf } from './wire.ts'

/** The model name that every answer of the demo model bears. */
export const demoModelName = 'threadmill-demo'

/** What the demo model says when it is asked what it is. */
export const demoIntroduction =
  `I am ${demoModelName}, the demo model that comes with Threadmill. I run on this machine, need no API key, and ` +
  'follow a few fixed rules instead of thinking. Ask me for the time in a city, for a sum such as 12 * 7, to read a ' +
  'file such as notes.txt, or to refund order 42: I then call the tools that your agent offers. Set an API key to ' +
  'talk to a real model.'

/** How the demo model behaves. */
export interface DemoModelOptions {
  /** Real time between two words of a stream, in ms; 15 by default. */
  readonly chunkDelayMs?: number
}

/**
 * A `respond` for a model server that stands in for a real model by fixed rules. It reads the last user message and
 * calls `clock` {city}, `calculator` {expression}, `read_file` {path} and `refund_order` {order}, each only if it is
 * offered, several in one answer if several are asked for. It puts the results of tools into a sentence, and echoes
 * everything else, saying that it is a demo.
 */
export function demoModel(options: DemoModelOptions = {}): ReplyFunction {
  const style = { chunks: 'words', chunkDelayMs: options.chunkDelayMs ?? 15, model: demoModelName } as const
  return (request): Reply => {
    const said = withoutFiles(request.messages)
    if (said.at(-1)?.role === 'tool') return text(sayResults(said), style)
    const calls = callsFor(request)
    if (calls.length > 0) return toolCalls(calls, style)
    return text(smallTalk(request), style)
  }
}

/** Files that tools attached stand behind their results, as a message that nobody said. */
function withoutFiles(messages: readonly WireMessage[]): readonly WireMessage[] {
  const isFiles = messages.at(-2)?.role === 'tool' && textOf(messages.at(-1)).startsWith('Attached by ')
  return isFiles ? messages.slice(0, -1) : messages
}

const lastUser = (request: LoggedRequest) => request.messages.findLast((message) => message.role === 'user')

function callsFor(request: LoggedRequest): ReplyToolCall[] {
  if (request.body.tool_choice === 'none') return []
  return readWishes(textOf(lastUser(request))).flatMap((wish) => {
    const tool = request.tools.find((offered) => offered.function.name === wish.tool)
    return tool === undefined ? [] : [{ name: wish.tool, arguments: argumentsFor(wish, tool) }]
  })
}

/** The arguments in the types that the tool's schema wants: an order can be a number or a text. */
function argumentsFor(wish: Wish, tool: WireTool): object {
  const properties = tool.function.parameters?.properties as Record<string, { type?: unknown } | undefined> | undefined
  return Object.fromEntries(
    Object.entries(wish.arguments).map(([name, value]) => {
      const type = properties?.[name]?.type
      return [name, type === 'number' || type === 'integer' ? Number(value) : value]
    }),
  )
}

const aboutMe =
  /\b(?:who|what)\s+are\s+you\b|\bwhat\s+can\s+(?:you|i)\b|\bhelp\b|\bintroduce\s+yourself\b|\byour\s+name\b/i

function smallTalk(request: LoggedRequest): string {
  const message = lastUser(request)
  const said = textOf(message).trim()
  if (aboutMe.test(said)) return demoIntroduction
  const parts = typeof message?.content === 'string' ? [] : (message?.content ?? [])
  const attached = parts.filter((part) => part.type !== 'text').length
  const seen = attached === 0 ? '' : ` (with ${attached} ${attached === 1 ? 'attachment' : 'attachments'})`
  return `You said: ${said === '' ? 'nothing' : said}${seen}\n\nI am ${demoModelName}, a demo model without a mind of its own. Ask "what can you do?" to see what I know.`
}
