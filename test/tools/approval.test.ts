import { expect } from 'chai'
import * as z from 'zod'
import type { Approval, ToolCallRow } from '../../models/rows.ts'
import { decideApproval } from '../../src/tools/approval.ts'
import { defineTool } from '../../src/tools/define-tool.ts'
import type { ApprovalResolver, Tool, ToolContext } from '../../src/tools/tool.ts'
import { CHAT, errorFrom, storedCall } from './rows.ts'

function tool(requiresApproval: boolean | ApprovalResolver): Tool {
  const parameters = z.object({})
  return defineTool({ name: 'refund', description: 'Refunds', parameters, execute: () => '', requiresApproval })
}

async function decide(of: Tool, call: Partial<ToolCallRow> = {}, remembered = false): Promise<string> {
  return (await decideApproval(of, storedCall(call), { chat: CHAT, remembered })).kind
}

const BEGUN = new Date(0)
const UNKNOWN = 'perhaps' as unknown as Approval

describe('decideApproval', () => {
  it('runs a call of a tool without approval unless it was denied', async () => {
    expect(await decide(tool(false))).to.equal('run')
    expect(await decide(tool(false), { approval: 'denied' })).to.equal('deny')
    expect(await decide(tool(false), { approval: UNKNOWN })).to.equal('run')
  })

  it('waits for a person until the call or an earlier one was approved', async () => {
    const guarded = tool(true)
    for (const approval of [null, 'pending', UNKNOWN] as const) {
      expect(await decide(guarded, { approval })).to.equal('wait')
      expect(await decide(guarded, { approval }, true)).to.equal('run')
    }
    expect(await decide(guarded, { approval: 'approved' })).to.equal('run')
    expect(await decide(guarded, { approval: 'remembered' })).to.equal('run')
    expect(await decide(guarded, { approval: 'denied' }, true)).to.equal('deny')
  })

  it('asks a resolver each time, also when the call waits, and does not count what was remembered', async () => {
    const seen: [ToolCallRow, ToolContext['chat']][] = []
    const answers: (boolean | null | undefined)[] = [undefined, null, false, true]
    const resolved = tool(async (call, chat) => {
      seen.push([call, chat])
      return answers[seen.length - 1]
    })
    expect(seen, 'asked at definition').to.deep.equal([])
    const kinds: string[] = []
    for (const approval of [null, 'pending', 'pending', 'pending'] as const) {
      kinds.push(await decide(resolved, { approval }, true))
    }
    expect(kinds).to.deep.equal(['wait', 'wait', 'deny', 'run'])
    expect(seen.map(([call, chat]) => [call.approval, chat])).to.deep.equal([
      [null, CHAT],
      ['pending', CHAT],
      ['pending', CHAT],
      ['pending', CHAT],
    ])
  })

  it('lets a recorded decision of a person win over a resolver', async () => {
    let asked = 0
    const resolver = (answer: boolean) =>
      tool(() => {
        asked++
        return answer
      })
    expect(await decide(resolver(false), { approval: 'approved' })).to.equal('run')
    expect(await decide(resolver(false), { approval: 'remembered' })).to.equal('run')
    expect(await decide(resolver(true), { approval: 'denied' })).to.equal('deny')
    expect(asked).to.equal(0)
  })

  it('waits where a resolver says something else, and lets its error out', async () => {
    expect(await decide(tool((() => 'yes') as unknown as ApprovalResolver))).to.equal('wait')
    const boom = new Error('boom')
    const throwing = tool(() => {
      throw boom
    })
    expect(await errorFrom(() => decide(throwing))).to.equal(boom)
  })

  it('waits for a person about an interrupted call, whatever else would let it run', async () => {
    const asked = { approval: 'pending', startedAt: BEGUN } as const
    for (const requiresApproval of [false, true, () => true]) {
      expect(await decide(tool(requiresApproval), asked, true)).to.equal('wait')
      expect(await decide(tool(requiresApproval), { ...asked, approval: 'approved' })).to.equal('run')
    }
    expect(await decide(tool(false), { approval: null, startedAt: BEGUN })).to.equal('run')
  })
})
