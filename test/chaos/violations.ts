import { lineageViolations } from './checks/lineage.ts'
import { messageViolations } from './checks/messages.ts'
import { restViolations } from './checks/rest.ts'
import { toolFindings } from './checks/tools.ts'
import { usageViolations } from './checks/usages.ts'
import type { Evidence, Violation } from './evidence.ts'

/** Everything that is wrong with a part that came to rest. */
export function violationsOf(evidence: Evidence): Violation[] {
  return [
    ...restViolations(evidence),
    ...messageViolations(evidence),
    ...lineageViolations(evidence),
    ...toolFindings(evidence).violations,
    ...usageViolations(evidence),
  ]
}
