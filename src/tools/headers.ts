import * as z from 'zod'

/** HTTP headers by their names. */
export const headersSchema = z.record(
  z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'must be the name of an HTTP header'),
  z.string('must be a text').regex(/^[\x20-\x7e\t]*$/, 'must be printable ASCII'),
  'must be an object of texts',
)
