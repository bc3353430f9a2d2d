import * as z from 'zod'
import { isOwner, OWNER_LIMIT, type Owner } from '../../models/owner.ts'

/** An owner as applications give it. */
export const ownerInput = z.custom<Owner>(
  isOwner,
  `must be a text, or { type, id } with two texts, of ${OWNER_LIMIT} whole characters at most in all`,
)
