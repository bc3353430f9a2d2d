import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import ts from 'typescript'

/** An application that uses something of every entry of the package; the same text for each way of compiling it. */
const consumer = `
import { type ChatEvent, defineAgent, defineTool, Threadmill, ToolError } from 'threadmill'
import { migrations } from 'threadmill/migrations'
import { startModelServer, text } from 'threadmill/testing'
import * as z from 'zod'

const tool = defineTool({
  name: 'add',
  description: 'Adds.',
  parameters: z.object({ a: z.number(), b: z.number().default(1) }),
  execute: ({ a, b }) => (a + b).toFixed(2),
})
const agent = defineAgent({ name: 'adder', tools: [tool] })

export async function run(): Promise<ChatEvent['type'] | undefined> {
  const server = await startModelServer({ respond: text('3') })
  const mill = await Threadmill.connect({ agents: [agent], openaiBaseUrl: server.url })
  const chat = await mill.chats.create({ agent })
  const rows = await mill.models.Chat.findAll({ where: { owner: 'someone' } })
  const owner: string | null | undefined = rows[0]?.owner
  if (owner === null || migrations === undefined) throw new ToolError('none')
  for await (const event of chat.events()) return event.type
  await mill.close()
  return undefined
}
`

/** How an application may be set up, by the names that tsconfig gives it. */
export interface SetUp {
  readonly name: string
  readonly files: readonly string[]
  readonly options: Readonly<Record<string, unknown>>
}

export const setUps: readonly SetUp[] = [
  {
    name: 'module NodeNext, as an ES module and as CommonJS, every declaration file checked',
    files: ['next.mts', 'next.cts'],
    options: { module: 'nodenext', skipLibCheck: false, exactOptionalPropertyTypes: true },
  },
  {
    name: 'a bundler',
    files: ['bundled.ts'],
    options: { module: 'esnext', moduleResolution: 'bundler', skipLibCheck: true },
  },
  {
    name: 'module CommonJS with the resolution of a bundler',
    files: ['common.ts'],
    options: { module: 'commonjs', moduleResolution: 'bundler', skipLibCheck: true },
  },
]

export interface Complaint {
  readonly file: string
  readonly text: string
}

/** What the compiler says against the application in that folder when it is set up so. */
export async function compile(folder: string, { files, options }: SetUp): Promise<Complaint[]> {
  const paths = files.map((file) => join(folder, file))
  await Promise.all(paths.map((path) => writeFile(path, consumer)))
  const strict = { strict: true, noUncheckedIndexedAccess: true, target: 'es2022', lib: ['es2022'], types: ['node'] }
  const settings = ts.convertCompilerOptionsFromJson({ ...strict, noEmit: true, ...options }, folder)
  const program = ts.createProgram(paths, settings.options)
  return [...settings.errors, ...ts.getPreEmitDiagnostics(program)].map(({ file, messageText }) => ({
    file: file?.fileName ?? 'tsconfig.json',
    text: ts.flattenDiagnosticMessageText(messageText, ' '),
  }))
}
