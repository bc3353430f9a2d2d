import { table } from '../reference/table.ts'
import { chatMethods, messages, type ParityRow, toolCall } from './rows.ts'
import { readSignatures } from './signatures.ts'
import { provedBy, readTitles } from './tests.ts'

/** All rows, by the document that names them. */
export const documents: readonly { readonly title: string; readonly rows: readonly ParityRow[] }[] = [
  { title: 'RubyLLM::ActiveRecord::ChatMethods', rows: chatMethods },
  { title: 'RubyLLM::ActiveRecord::ToolCall', rows: toolCall },
  { title: 'RobotLab ToolCallMessage', rows: messages },
]

/** Whether a row is there, with a test that proves it. */
export function worksOf({ ours }: ParityRow): boolean {
  return ours !== 'not yet'
}

/** docs/parity.md. */
export function parityPage(root: string): string {
  const signatures = readSignatures(root)
  const titles = readTitles(root)
  const all = documents.flatMap(({ rows }) => rows)
  const works = all.filter(worksOf).length
  const head = ['there', 'here', 'signature', 'kept in', 'proved by', 'state']
  const cells = (row: ParityRow): string[] => {
    const files = [...new Set(row.tests.flatMap((test) => provedBy(test, titles)))]
    const numbers = row.tests.filter((test) => !test.includes('#'))
    const proof = [...numbers, ...files.map((file) => `\`${file}\``)].join(', ')
    const signature = signatures.get(row.ours)
    return [
      `\`${row.theirs}\``,
      worksOf(row) ? `\`${row.ours.replace(/^Chat\./, 'chat.').replace(/\.constructor$/, '')}\`` : '',
      signature === undefined || signature === '' ? '' : `\`${signature}\``,
      row.kept === '-' ? '' : row.kept,
      proof,
      worksOf(row) ? 'works' : 'not yet',
    ]
  }
  return `<!-- Made by \`npm run docs\`. Do not edit. -->

# Parity

What the documents that Threadmill takes its behaviour from name, and what it is here: ${all.length} rows, ${works} work, ${all.length - works} not yet.

"Kept in": \`row\` is stored with the chat, so that every process has it; \`object\` is of this chat object alone. Numbers are those of
[Behaviour](behaviour.md), which the tests named cite.

${documents.map(({ title, rows }) => `## ${title}\n\n${table(head, rows.map(cells))}`).join('\n\n')}
`
}
