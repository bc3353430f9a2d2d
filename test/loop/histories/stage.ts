import * as z from 'zod'
import { diskStore } from '../../../src/attachments/store.ts'
import { BadRequestError } from '../../../src/errors.ts'
import { defineAgent, defineTool, ServerError, ToolError } from '../../../src/index.ts'
import { realClock } from '../../../src/loop/real-clock.ts'
import type { LoopPorts } from '../../../src/loop/run-context.ts'
import { renderRequest } from '../../../src/providers/chat-completions/render.ts'
import type { Answer, AnswerToolCall, ModelClient, ModelRequest } from '../../../src/providers/provider.ts'
import { effectiveSettings } from '../../../src/tools/settings.ts'
import { MemoryClaims } from '../../memory/held-claims.ts'
import { memoryRows } from '../../memory/rows.ts'
import { MemoryTables } from '../../memory/tables.ts'
import type { Act, CallKind, History } from './history.ts'

export const chatId = 'chat'

/** In ms of the stage's clock, which moves by one at each look: beyond any history. */
const ttlMs = 1_000_000_000

/** A chat in memory whose model, tools and people do what a history says, and what was seen of it. */
export class Stage {
  readonly tables = new MemoryTables(() => new Date(++this.#ms))
  readonly claims = new MemoryClaims(this.tables, ttlMs, () => this.newId('claim'))
  readonly ports: LoopPorts
  /** The bodies that the provider was sent. */
  readonly requests: unknown[] = []
  /** How often the tool of each call ran, by the id of its row. */
  readonly executions = new Map<string, number>()
  #ms = 0
  #ids = 0
  #executions = 0
  readonly #history: History
  readonly #perform: (stage: Stage, act: Act) => void

  constructor(history: History, perform: (stage: Stage, act: Act) => void) {
    this.#history = history
    this.#perform = perform
    this.tables.addChat({ id: chatId, agent: null })
    this.ports = this.#portsOf()
  }

  newId(of: string): string {
    return `${of}-${String(++this.#ids).padStart(6, '0')}`
  }

  #portsOf(): LoopPorts {
    const client: ModelClient = { provider: 'openai', attempt: async (request) => this.#answer(request) }
    const agent = defineAgent({
      name: 'any',
      client,
      tools: this.#tools(),
      retries: 1,
      concurrency: this.#history.concurrency,
      streaming: false,
    })
    const tools = new Map(agent.tools.map((tool) => [tool.name, tool]))
    return {
      claims: this.claims,
      rows: memoryRows(this.tables, ttlMs),
      bell: { ring: async () => {} },
      events: { publish() {}, flush: async () => {}, forget: async () => {} },
      files: { store: async () => unexpected('files'), keep: async () => {}, purge: async () => {} },
      clock: {
        now: () => this.tables.now(),
        random: () => 0.5,
        wait: async (_ms, signal) => signal.throwIfAborted(),
        newId: () => this.newId('id'),
        timers: realClock.timers,
      },
      observe() {},
      within: (_step, work) => work(() => {}),
      content: () => null,
      configure: async () => ({
        agent,
        model: 'any-model',
        client,
        instructions: 'Be brief.',
        ownInstructions: null,
        settings: effectiveSettings({}, agent),
        headers: {},
        store: diskStore('nowhere'),
        converters: [],
        rounds: agent.rounds,
        concurrency: agent.concurrency,
        compaction: null,
        clientFor: () => client,
        tools,
        kept: tools,
      }),
      chatOf: () => null,
      records: noRecords,
      agentNamed: () => agent,
      requiresApproval: (_chat, name) => name === 'gated',
      tellTurnEnd: async () => {},
    }
  }

  #tools() {
    const of = (name: string, end: () => unknown) =>
      defineTool({
        name,
        description: name,
        parameters: z.object({}),
        requiresApproval: name === 'gated',
        execute: (_args, { toolCall }) => {
          this.executions.set(toolCall.id, (this.executions.get(toolCall.id) ?? 0) + 1)
          const meanwhile = this.#history.duringTools[this.#executions++] ?? null
          if (meanwhile !== null) this.#perform(this, meanwhile)
          return end()
        },
      })
    return [
      of('free', () => 'done'),
      of('gated', () => 'done'),
      of('reports', () => {
        throw new ToolError('no such order')
      }),
      of('raises', () => {
        throw new TypeError('a bug')
      }),
    ]
  }

  #answer(request: ModelRequest): Answer {
    this.requests.push(renderRequest(request))
    const { reply, meanwhile } = this.#history.replies[this.requests.length - 1] ?? {
      reply: { kind: 'text' },
      meanwhile: null,
    }
    if (meanwhile !== null) this.#perform(this, meanwhile)
    switch (reply.kind) {
      case 'text':
        return answer('an answer', [])
      case 'empty':
        return answer('', [])
      case 'calls':
        return answer(reply.alsoText ? 'one moment' : '', reply.calls.map(callOf))
      case 'error':
        throw reply.retryable
          ? new ServerError('overloaded', { retryable: true, status: 500 })
          : new BadRequestError('refused', { status: 400 })
      default:
        return reply satisfies never
    }
  }
}

function callOf(kind: CallKind, at: number): AnswerToolCall {
  const malformed = kind === 'malformed'
  return {
    // The same ids in every answer, as some providers send them.
    providerCallId: `call_${at}`,
    name: malformed ? 'free' : kind,
    argumentsText: malformed ? 'not json' : '{}',
    arguments: malformed ? null : {},
    thoughtSignature: null,
  }
}

function answer(text: string, toolCalls: readonly AnswerToolCall[]): Answer {
  const usage = { input: 10, output: 2, cacheRead: null, cacheWrite: null, thinking: null }
  return {
    text,
    toolCalls,
    usage,
    thinking: null,
    thinkingSignature: null,
    rawReasoning: null,
    citations: null,
    finishReason: toolCalls.length > 0 ? 'tool_calls' : 'stop',
    model: 'any-model',
    responseId: null,
  }
}

/** Only hooks ask for records, and there are none. */
const noRecords: LoopPorts['records'] = {
  message: () => unexpected('records'),
  queuedMessage: () => unexpected('records'),
}

function unexpected(what: string): never {
  throw new Error(`nobody asks for ${what} here`)
}
