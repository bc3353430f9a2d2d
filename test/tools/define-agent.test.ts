import { expect } from 'chai'
import * as z from 'zod'
import { ArgumentError, ConfigurationError } from '../../src/errors.ts'
import type { ModelClient } from '../../src/providers/provider.ts'
import { type AgentDefinition, defineAgent } from '../../src/tools/define-agent.ts'
import { defineTool } from '../../src/tools/define-tool.ts'
import { agentRegistry, toolRegistry } from '../../src/tools/registry.ts'
import type { Tool } from '../../src/tools/tool.ts'

const client: ModelClient = { provider: 'house', attempt: () => Promise.reject(new Error('not asked')) }

function toolNamed(name: string): Tool {
  return defineTool({ name, description: 'A tool', parameters: z.object({}), execute: () => '' })
}

function define(definition: Record<string, unknown>) {
  return defineAgent(definition as unknown as AgentDefinition)
}

describe('defineAgent', () => {
  it('fills in defaults and freezes the agent', () => {
    const agent = defineAgent({ name: 'support' })
    expect(agent).to.deep.equal({
      name: 'support',
      model: null,
      provider: 'openai',
      client: null,
      instructions: null,
      instructionsAt: 'run',
      inputs: null,
      tools: [],
      temperature: null,
      maxOutputTokens: null,
      streaming: true,
      broadcast: 'auto',
      rounds: 50,
      repetitionLimit: null,
      concurrency: 1,
      toolExecution: 'inline',
      retries: 3,
      attempts: 5,
      prices: null,
      contextWindow: null,
      compaction: null,
      fallbacks: null,
      providerOptions: null,
      endUser: null,
      schema: null,
      toolOptions: null,
      thinking: null,
      citations: null,
      caching: null,
      headers: null,
      converters: [],
      hooks: {},
      timeoutMs: 900_000,
      idleMs: 60_000,
      maxAnswerBytes: 4_194_304,
      onTurnEnd: null,
    })
    expect(Object.isFrozen(agent)).to.equal(true)
    expect(Object.isFrozen(agent.tools)).to.equal(true)
  })

  it('keeps what it is given, the same tool and client objects included', () => {
    const refund = toolNamed('refund')
    const given = {
      name: 'support',
      model: 'm',
      client,
      instructions: 'Be kind',
      tools: [refund],
      temperature: 0.5,
      maxOutputTokens: 100,
      streaming: false,
      broadcast: 'manual' as const,
      rounds: 2,
      repetitionLimit: 3,
      toolExecution: 'queue' as const,
      retries: 0,
      attempts: 2,
      prices: { input: 1, output: 2, cacheRead: 0.5 },
      timeoutMs: 5000,
      contextWindow: 1000,
      compaction: { at: 0.8, keep: 2 },
      fallbacks: { models: [{ model: 'other' }] },
      providerOptions: { seed: 1 },
      endUser: 'u-1',
      schema: { name: 'order', schema: { type: 'object', properties: {}, additionalProperties: false } },
      toolOptions: { choice: 'auto' },
      thinking: { effort: 'low' as const },
      citations: false,
      caching: { key: 'k' },
      headers: { 'x-team': 'a' },
      hooks: { afterMessage: [() => {}] },
      idleMs: 1000,
      maxAnswerBytes: 5000,
      onTurnEnd: null,
    }
    const agent = defineAgent(given)
    expect(agent).to.deep.equal({
      ...given,
      provider: 'house',
      concurrency: 1,
      converters: [],
      instructionsAt: 'run',
      inputs: null,
    })
    expect(agent.tools[0]).to.equal(refund)
    expect(agent.client).to.equal(client)
  })

  it('reads concurrency as a number, true as eight and false as one', () => {
    const concurrency = (value: boolean | number) => defineAgent({ name: 'a', concurrency: value }).concurrency
    expect([concurrency(true), concurrency(false), concurrency(3)]).to.deep.equal([8, 1, 3])
  })

  it('names every problem at once', () => {
    const bad = {
      name: 'support',
      temperature: 3,
      maxOutputTokens: 0,
      rounds: 1.5,
      concurrency: 0,
      retries: -1,
      prices: { input: -1, output: 1, ouput: 2 },
      timeoutMs: Number.POSITIVE_INFINITY,
      maxAnswerBytes: 9 * 1024 * 1024,
      tools: [{}],
      client: {},
      modle: 'x',
    }
    expect(() => define(bad))
      .to.throw(ArgumentError)
      .with.property('message')
      .that.matches(/^Agent "support": /)
      .and.includes('prices.ouput is not an option')
      .and.includes('modle is not an option')
      .and.includes('tools[0] must be made by defineTool')
      .and.satisfies((message: string) =>
        [
          'temperature',
          'maxOutputTokens',
          'rounds',
          'concurrency',
          'retries',
          'prices.input',
          'timeoutMs',
          'maxAnswerBytes',
          'client',
        ].every((option) => message.includes(`${option} must`)),
      )
  })

  it('refuses a missing name and a provider that is not the client’s', () => {
    expect(() => define({})).to.throw(ArgumentError, 'name is missing')
    expect(() => defineAgent({ name: 'a', client, provider: 'openai' })).to.throw(ArgumentError, 'provider must be')
    expect(defineAgent({ name: 'a', client, provider: 'house' }).provider).to.equal('house')
  })

  it('refuses two tools of one name and names them', () => {
    const tools = ['refund', 'mail', 'refund', 'mail', 'ok'].map(toolNamed)
    expect(() => defineAgent({ name: 'support', tools })).to.throw(ConfigurationError, 'named refund, mail:')
  })
})

describe('registries', () => {
  it('find the tools of an agent and those of the application by name', () => {
    const [refund, mail] = [toolNamed('refund'), toolNamed('mail')]
    const agent = defineAgent({ name: 'support', tools: [refund] })
    const tools = toolRegistry(agent, [mail, refund])
    expect([...tools]).to.deep.equal([
      ['refund', refund],
      ['mail', mail],
    ])
    expect([...toolRegistry(null, [mail]).keys()]).to.deep.equal(['mail'])
  })

  it('refuse different tools of one name and name them', () => {
    const agent = defineAgent({ name: 'support', tools: [toolNamed('refund')] })
    expect(() => toolRegistry(agent, [toolNamed('refund')])).to.throw(ConfigurationError, /"support".*named refund:/)
  })

  it('find agents by name and refuse two of one name', () => {
    const [a, b] = [defineAgent({ name: 'a' }), defineAgent({ name: 'b' })]
    expect(agentRegistry([a, b]).get('b')).to.equal(b)
    expect(() => agentRegistry([a, b, defineAgent({ name: 'a' })])).to.throw(ConfigurationError, 'named a:')
  })
})
