import { whyUnstorable } from '../../models/storable.ts'
import type { Tool } from '../tools/tool.ts'

/** Whether a model or a provider can be named so. */
export function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= 255 && whyUnstorable(value) === null
}

/** Whether it is a tool, or a text that may name one. */
export function isToolOrName(tool: unknown): boolean {
  if (typeof tool === 'string') return true
  const { name, execute, validate } = (tool ?? {}) as Partial<Record<keyof Tool, unknown>>
  return typeof name === 'string' && typeof execute === 'function' && typeof validate === 'function'
}
