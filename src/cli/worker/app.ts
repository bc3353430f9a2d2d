import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { z } from 'zod'
import type { AttachmentsOptions } from '../../attachments/options.ts'
import { ConfigurationError } from '../../errors.ts'
import type { ContextFor } from '../../loop/contexts.ts'
import type { Agent } from '../../tools/agent.ts'
import type { Tool } from '../../tools/tool.ts'

/** What an application brings to a worker: the default export of its file, or what that function returns. */
export interface App {
  readonly agents: readonly Agent[]
  readonly tools: readonly Tool[]
  /** What its chats ask their models with; left out: as configured. */
  readonly contextFor?: ContextFor | undefined
  /** Where the files of messages are kept; left out: in the data directory. */
  readonly attachments?: AttachmentsOptions | undefined
}

/** Made by `defineAgent` and `defineTool`, whose own checks are stricter: this only tells them from something else. */
const agent = z.custom<Agent>(
  (value) => isRecord(value) && typeof value.name === 'string' && Array.isArray(value.tools) && 'rounds' in value,
  'must be made by defineAgent()',
)
const tool = z.custom<Tool>(
  (value) => isRecord(value) && typeof value.name === 'string' && typeof value.validate === 'function',
  'must be made by defineTool()',
)
const appSchema = z.strictObject({
  agents: z.array(agent, 'must be a list of agents').min(1, 'must name at least one agent'),
  tools: z.array(tool, 'must be a list of tools').default([]),
  contextFor: z.custom<ContextFor>((value) => typeof value === 'function', 'must be a function').optional(),
  attachments: z.custom<AttachmentsOptions>(isRecord, 'must be an object').optional(),
})

/**
 * Loads an application's file, TypeScript or JavaScript, ESM or CommonJS.
 * @param option what named the file, for messages.
 * @throws {ConfigurationError} that says what is wrong with it, with the error that it threw as cause.
 */
export async function loadApp(file: string, option = '--app'): Promise<App> {
  const path = resolve(file)
  const isFile = await stat(path).then(
    (found) => found.isFile(),
    () => false,
  )
  if (!isFile) throw new ConfigurationError(`${option}: there is no file ${path}.`)
  const exported = await load(path, option)
  const value = await givenBy(exported, path, option)
  return checked(value, path, option)
}

async function load(path: string, option: string): Promise<unknown> {
  try {
    if (/\.[cm]?tsx?$/.test(path)) await registerTypeScript()
    return unwrapped(await import(pathToFileURL(path).href))
  } catch (error) {
    throw new ConfigurationError(`${option}: ${path} could not be loaded: ${messageOf(error)}`, { cause: error })
  }
}

/** For the whole process: the file's own imports are TypeScript, too. Where tsx runs this very program, it does so already. */
async function registerTypeScript(): Promise<void> {
  if (import.meta.url.endsWith('.ts')) return
  const [{ register: esm }, { register: cjs }] = await Promise.all([import('tsx/esm/api'), import('tsx/cjs/api')])
  cjs()
  esm()
}

/** Of a module, its default export; CommonJS that was compiled from ESM has it one step further in. */
function unwrapped(module: unknown): unknown {
  if (!isRecord(module) || !('default' in module)) return undefined
  const inner = module.default
  return isRecord(inner) && inner.__esModule === true && 'default' in inner ? inner.default : inner
}

async function givenBy(exported: unknown, path: string, option: string): Promise<unknown> {
  try {
    return await (typeof exported === 'function' ? exported() : exported)
  } catch (error) {
    throw new ConfigurationError(`${option}: the default export of ${path} failed: ${messageOf(error)}`, {
      cause: error,
    })
  }
}

function checked(value: unknown, path: string, option: string): App {
  if (!isRecord(value)) {
    const found = value === undefined ? 'nothing' : Array.isArray(value) ? 'a list' : typeof value
    throw new ConfigurationError(
      `${option}: the default export of ${path} is ${found}: it must be { agents, tools }, or a function or a promise that gives that.`,
    )
  }
  const parsed = appSchema.safeParse(value)
  if (parsed.success) return parsed.data
  const problems = parsed.error.issues.map((issue) =>
    issue.code === 'unrecognized_keys'
      ? `- ${issue.keys.join(', ')}: not known here; what a worker takes is agents, tools, contextFor and attachments`
      : `- ${issue.path.join('.')}: ${issue.message}`,
  )
  throw new ConfigurationError(`${option}: the default export of ${path} is not usable:\n${problems.join('\n')}`)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
