import type { ToolCallRow } from '../../models/rows.ts'
import type { Tool } from '../tools/tool.ts'
import type { RunContext } from './run-context.ts'

/**
 * The tool that a call is run by; undefined where this process has none. A call that the model was once offered, or that
 * someone decided about, is also run by a tool that is offered no longer: a deploy may have taken it from the agent. (E146)
 */
export function toolOfCall(run: Pick<RunContext, 'configuration'>, call: ToolCallRow): Tool | undefined {
  const { tools, kept } = run.configuration
  const offered = tools.get(call.name)
  if (offered !== undefined) return offered
  return call.offered || call.approval !== null ? kept.get(call.name) : undefined
}
