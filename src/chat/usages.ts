import * as z from 'zod'
import type { Database } from '../../models/database.ts'
import type { Owner } from '../../models/owner.ts'
import { ownerKey } from '../../models/owner.ts'
import { totalUsage, type UsageTotal } from '../../models/owner-totals.ts'
import { ArgumentError } from '../errors.ts'
import { ownerInput } from './owner-input.ts'

/** Which attempts are added up. */
export interface UsageTotalOptions {
  /** Of chats that belonged to this owner when the attempt began. Default: of all. */
  readonly owner?: Owner | undefined
  /** That began then or later. Default: from the first one on. */
  readonly since?: Date | undefined
  /** That began before then. Default: up to now. */
  readonly until?: Date | undefined
}

const schema = z.strictObject({
  owner: ownerInput.optional(),
  since: z.date().optional(),
  until: z.date().optional(),
})

/** What was spent, over all chats: `mill.usage`. */
export class Usages {
  readonly #db: Database

  /** @internal */
  constructor(db: Database) {
    this.#db = db
  }

  /**
   * Tokens and USD of all attempts at models, failed ones included; of deleted chats nothing is left. Zero attempts give `cost: '0'`
   * and null tokens. (E51)
   * @throws {ArgumentError} for options that there are not.
   */
  async total(options: UsageTotalOptions = {}): Promise<UsageTotal> {
    const parsed = schema.safeParse(options)
    if (!parsed.success) {
      const problems = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'options'}: ${issue.message}`)
      throw new ArgumentError(`usage.total() can't add that up. ${problems.join('; ')}`)
    }
    const { owner, since = null, until = null } = parsed.data
    return totalUsage(this.#db, { owner: owner === undefined ? null : ownerKey(owner), since, until })
  }
}
