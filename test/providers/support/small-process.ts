import { openAiClient } from '../../../src/providers/openai.ts'
import { attemptOptions, minimalRequest, rejection } from '../scripted-server.ts'

// Asks a server once by each name, and prints the codes of the errors: run with a small heap, which an unbounded answer would burst.

const [baseURL, ...names] = process.argv.slice(2)
const client = openAiClient({ apiKey: 'k', ...(baseURL === undefined ? {} : { baseURL }) })
const codes: [string, unknown][] = []
for (const model of names) {
  const request = minimalRequest({ model, streaming: model !== '50 MB whole' })
  const error = await rejection(client.attempt(request, { ...attemptOptions(), onProgress: () => {} }))
  codes.push([model, (error as { code?: unknown }).code ?? String(error)])
}
process.stdout.write(JSON.stringify(codes))
