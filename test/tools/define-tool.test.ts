import { expect } from 'chai'
import * as z from 'zod'
import * as mini from 'zod/mini'
import type { JsonObject } from '../../models/rows.ts'
import { ArgumentError } from '../../src/errors.ts'
import { defineTool, type ToolDefinition } from '../../src/tools/define-tool.ts'
import type { ToolParameters } from '../../src/tools/parameters.ts'
import type { StandardSchema } from '../../src/tools/standard-schema.ts'
import type { Tool } from '../../src/tools/tool.ts'
import { CHAT, storedCall } from './rows.ts'

const CONTEXT = {
  toolCall: storedCall(),
  chat: CHAT,
  idempotencyKey: 'call-row-1',
  signal: new AbortController().signal,
  progress: () => {},
  attach: async () => {},
  ask: async () => ({}),
  task: ({ id }: { id: string }) => ({ id }),
  delegate: async () => ({ id: 'sub' }),
  transfer: async () => ({ agent: 'other' }),
}

function toolWith(parameters: ToolParameters): Tool {
  return defineTool({ name: 'probe', description: 'A probe', parameters, execute: (args) => args })
}

async function refusal(tool: Tool, args: JsonObject): Promise<string> {
  const validated = await tool.validate(args)
  if (validated.ok) throw new Error('the arguments were taken')
  return validated.message
}

function badDefinition(change: Record<string, unknown>): Error {
  const definition = { name: 'probe', description: 'A probe', parameters: z.object({}), execute: () => '', ...change }
  try {
    defineTool(definition as unknown as ToolDefinition<ToolParameters>)
  } catch (error) {
    expect(error).to.be.instanceOf(ArgumentError)
    return error as Error
  }
  throw new Error('the definition was taken')
}

describe('defineTool', () => {
  it('fills in defaults and freezes the tool and its schema', () => {
    const tool = toolWith(z.object({ city: z.string() }))
    expect(tool).to.include({
      requiresApproval: false,
      timeoutMs: 600_000,
      onError: 'raise',
      onInterrupted: 'retry',
    })
    expect(Object.isFrozen(tool)).to.equal(true)
    expect(Object.isFrozen(tool.parameters.properties)).to.equal(true)
  })

  it('infers the arguments of execute from Zod and gives it defaults and transforms applied', async () => {
    const tool = defineTool({
      name: 'weather',
      description: 'Tells the weather',
      parameters: z.object({
        city: z.string().transform((city) => city.length),
        unit: z.enum(['c', 'f']).default('c'),
      }),
      execute(args) {
        const length: number = args.city
        const unit: 'c' | 'f' = args.unit
        // @ts-expect-error the schema names no such argument
        const nothing: unknown = args.country
        return { length, unit, nothing }
      },
    })
    const validated = await tool.validate({ city: 'Rome' })
    if (!validated.ok) throw new Error(validated.message)
    expect(await tool.execute(validated.value, CONTEXT)).to.deep.equal({ length: 4, unit: 'c', nothing: undefined })
  })

  it('rejects a thrown error of a synchronous execute instead of throwing it', async () => {
    const boom = new Error('boom')
    const tool = defineTool({
      name: 'boom',
      description: 'Fails',
      parameters: z.object({}),
      execute() {
        throw boom
      },
    })
    const caught = await tool.execute({}, CONTEXT).catch((error: unknown) => error)
    expect(caught).to.equal(boom)
  })

  it('names the tool and every problem of a bad definition', () => {
    const error = badDefinition({ timeoutMs: 0, onError: 'ignore', onInterrupted: 'maybe', requiresApproval: 'yes' })
    expect(error.message).to.match(/^Tool "probe": /)
    for (const option of ['timeoutMs', 'onError', 'onInterrupted', 'requiresApproval']) {
      expect(error.message).to.contain(option)
    }
  })

  it('refuses options that it does not have, missing ones and endless limits', () => {
    expect(badDefinition({ pause: () => {} }).message).to.contain('pause is not an option')
    expect(badDefinition({ cancelTask: 'no' }).message).to.contain('cancelTask must be a function')
    expect(badDefinition({ execute: undefined }).message).to.contain('execute is missing')
    expect(badDefinition({ parameters: undefined }).message).to.contain('parameters is missing')
    expect(badDefinition({ description: ' ' }).message).to.contain('description must not be blank')
    expect(badDefinition({ timeoutMs: Number.POSITIVE_INFINITY }).message).to.contain('timeoutMs')
    expect(badDefinition({ timeoutMs: 2 ** 31 }).message).to.contain('timeoutMs')
  })

  it('takes only names that every provider takes', () => {
    for (const name of ['', 'with space', 'dotted.name', 'ü', 'a'.repeat(65)]) {
      expect(badDefinition({ name }).message).to.contain('name must be 1 to 64')
    }
    expect(toolWith(z.object({})).name).to.equal('probe')
  })

  it('refuses anything that is no object of options', () => {
    expect(() => defineTool(null as unknown as ToolDefinition<ToolParameters>)).to.throw(
      ArgumentError,
      'must be an object',
    )
  })
})

describe('the parameters of a tool', () => {
  it('reach the model as a closed object without dialect and generated titles', () => {
    const tool = toolWith({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      title: 'ProbeArguments',
      type: 'object',
      properties: {
        order_id: { title: 'Order Id', type: 'string' },
        title: { title: 'What it is called in the shop', type: 'string' },
      },
    })
    expect(tool.parameters).to.deep.equal({
      type: 'object',
      properties: { order_id: { type: 'string' }, title: { title: 'What it is called in the shop', type: 'string' } },
      additionalProperties: false,
    })
  })

  it('leave the schema that was passed in as it was', () => {
    const schema = { type: 'object', title: 'Probe', properties: {} }
    toolWith(schema)
    expect(schema).to.deep.equal({ type: 'object', title: 'Probe', properties: {} })
    expect(Object.isFrozen(schema)).to.equal(false)
  })

  it('name every missing, unknown and wrong argument to the model, whatever the schema is', async () => {
    const json = {
      type: 'object',
      properties: { city: { type: 'string' }, days: { type: 'integer' } },
      required: ['city'],
    }
    for (const parameters of [z.object({ city: z.string(), days: z.int().optional() }), json]) {
      const message = await refusal(toolWith(parameters), { days: 'two', town: 'Rome' })
      expect(message).to.contain('city is missing')
      expect(message).to.contain('town is unknown')
      expect(message).to.match(/days.*(integer|number|int)/)
      expect(message).to.contain("The tool's arguments: city, days.")
    }
  })

  it('refuse unknown keys inside Zod objects, lists, recursive types and unions too', async () => {
    const Node = z.object({
      name: z.string(),
      get children() {
        return z.array(Node).optional()
      },
    })
    const tool = toolWith(
      z.object({
        tree: Node,
        shape: z.union([z.object({ side: z.number() }), z.object({ radius: z.number() })]),
      }),
    )
    const tree = { name: 'a', children: [{ name: 'b', nmae: 'c' }] }
    expect(await refusal(tool, { tree, shape: { side: 1, color: 'red' } })).to.match(
      /^tree\.children\[0]\.nmae is unknown; shape\.color is unknown\./,
    )
    expect((await tool.validate({ tree: { name: 'a', children: [] }, shape: { radius: 1 } })).ok).to.equal(true)
  })

  it('say of a union why each of its branches does not fit', async () => {
    const tool = toolWith(z.object({ at: z.union([z.string(), z.object({ day: z.int() })]) }))
    expect(await refusal(tool, { at: { day: 'x' } })).to.match(/^at: .*expected string.*\|.*day: .*expected/)
  })

  it('stay open where the schema says so', async () => {
    const open = toolWith(z.looseObject({ city: z.string() }))
    expect((await open.validate({ city: 'Rome', more: 1 })).ok).to.equal(true)
    const typed = toolWith({ type: 'object', additionalProperties: { type: 'number' } })
    expect((await typed.validate({ any: 1 })).ok).to.equal(true)
    expect(await refusal(typed, { any: 'x' })).to.contain('any must be number, not string')
  })

  it('let a JSON Schema that is put together from parts name its arguments in each of them', async () => {
    const tool = toolWith({
      type: 'object',
      properties: { a: { type: 'string' } },
      allOf: [{ type: 'object', properties: { b: { type: 'string' } } }],
    })
    expect((await tool.validate({ a: 'x', b: 'y' })).ok).to.equal(true)
    expect(await refusal(tool, { c: 'z' })).to.contain('c is unknown')
  })

  it('take a recursive schema that begins with a reference', async () => {
    const Node = z
      .object({
        name: z.string(),
        get children() {
          return z.array(Node)
        },
      })
      .meta({ id: 'Node' })
    const tool = toolWith(Node)
    expect(tool.parameters.type).to.equal('object')
    expect(await refusal(tool, { name: 'a', children: [{ name: 'b' }] })).to.contain('children[0].children is missing')
  })

  it('check formats and fill in defaults of a JSON Schema without touching the stored arguments', async () => {
    const tool = toolWith({
      type: 'object',
      properties: { mail: { type: 'string', format: 'email' }, limit: { type: 'integer', default: 5 } },
      required: ['mail'],
    })
    expect(await refusal(tool, { mail: 'nobody' })).to.contain('mail must match format "email"')
    const args = { mail: 'a@b.example' }
    expect(await tool.validate(args)).to.deep.equal({ ok: true, value: { mail: 'a@b.example', limit: 5 } })
    expect(args).to.deep.equal({ mail: 'a@b.example' })
  })

  it('read a JSON Schema by the dialect that it names', async () => {
    // A list under "items" describes positions in draft-07 and is an error in 2020-12.
    const pair = { type: 'array', items: [{ type: 'string' }, { type: 'number' }], additionalItems: false }
    const schema = { type: 'object', properties: { pair } }
    const tool = toolWith({ $schema: 'http://json-schema.org/draft-07/schema#', ...schema })
    expect((await tool.validate({ pair: ['a', 1] })).ok).to.equal(true)
    expect(await refusal(tool, { pair: ['a', 'b'] })).to.contain('pair[1] must be number')
    expect(badDefinition({ parameters: schema }).message).to.contain('not a valid JSON Schema')
    const old = { $schema: 'http://json-schema.org/draft-04/schema#', type: 'object' }
    expect(badDefinition({ parameters: old }).message).to.contain('use draft-07, 2019-09 or 2020-12')
  })

  it('may have the $id of another tool', async () => {
    const withId = (type: string) =>
      toolWith({ $id: 'https://example.com/args.json', type: 'object', properties: { a: { type } } })
    const [text, number] = [withId('string'), withId('number')]
    expect((await text.validate({ a: 'x' })).ok).to.equal(true)
    expect((await number.validate({ a: 1 })).ok).to.equal(true)
    expect((await number.validate({ a: 'x' })).ok).to.equal(false)
  })

  it('are refused at definition when they describe no object, or can not be written down', () => {
    for (const parameters of [z.string(), z.union([z.object({}), z.object({})]), { type: 'array' }]) {
      expect(badDefinition({ parameters }).message).to.contain('Tool "probe": parameters must describe an object')
    }
    expect(badDefinition({ parameters: z.object({ at: z.date() }) }).message).to.contain('JSON Schema')
    expect(badDefinition({ parameters: 'city' }).message).to.contain('parameters must be')
    expect(badDefinition({ parameters: { type: 'object', properties: { a: { type: 'text' } } } }).message).to.contain(
      'not a valid JSON Schema',
    )
  })

  it('may be a schema of any library that yields JSON Schema, and type the arguments', async () => {
    const schema = standardSchema({
      jsonSchema: { input: () => ({ type: 'object', properties: { n: { type: 'number' } }, required: ['n'] }) },
    })
    const tool = defineTool({
      name: 'probe',
      description: 'A probe',
      parameters: schema,
      execute(args) {
        const doubled: number = args.doubled
        return doubled
      },
    })
    expect(await tool.validate({ n: 2 })).to.deep.equal({ ok: true, value: { doubled: 4 } })
    expect(await refusal(tool, { n: 'x' })).to.contain('n: not a number')
    expect(await refusal(tool, {})).to.contain('n is missing')
    expect(await refusal(tool, { n: 1, m: 2 })).to.contain('m is unknown')
  })

  it('fall back to draft-07 for a library that knows no other, and refuse one that yields nothing', async () => {
    const older = standardSchema({
      jsonSchema: {
        input({ target }: { target: string }) {
          if (target !== 'draft-07') throw new Error('unsupported')
          return { type: 'object', properties: { n: { type: 'number' } } }
        },
      },
    })
    expect(toolWith(older).parameters.properties).to.deep.equal({ n: { type: 'number' } })
    expect(badDefinition({ parameters: standardSchema({}) }).message).to.contain('parameters yield no JSON Schema')
  })

  it('may be written with the small variant of Zod', async () => {
    const tool = toolWith(mini.object({ city: mini.string() }))
    expect(tool.parameters.required).to.deep.equal(['city'])
    expect(await refusal(tool, { town: 'Rome' })).to.contain('town is unknown; city is missing')
  })

  it('refuse instead of throwing when a check of the author throws', async () => {
    const tool = toolWith(
      z.object({
        a: z.string().refine(() => {
          throw new Error('broken check')
        }),
      }),
    )
    expect(await refusal(tool, { a: 'x' })).to.contain('broken check')
  })
})

function standardSchema(more: object): StandardSchema<{ doubled: number }> {
  return {
    '~standard': {
      version: 1,
      vendor: 'homemade',
      validate(value) {
        const { n } = value as { n?: unknown }
        if (typeof n !== 'number') return { issues: [{ message: 'not a number', path: [{ key: 'n' }] }] }
        return { value: { doubled: n * 2 } }
      },
      ...more,
    },
  }
}
