import type { Agent } from '../../../src/index.ts'

/** For worker processes that run chats without an agent. */
export const agents: readonly Agent[] = []
