import ts from 'typescript'
import { table } from './table.ts'

/** One class of `src/errors.ts`, as its source says it. */
export interface ErrorEntry {
  readonly name: string
  readonly parent: string
  /** Null for an abstract class: nothing of that class itself is ever thrown. */
  readonly code: string | null
  /** `varies`: each error says so itself. */
  readonly retryable: 'yes' | 'no' | 'varies'
  readonly meaning: string
  /** What to do; '' where the source does not say. */
  readonly remedy: string
}

/** Every error class of a source, in its order. */
export function readErrors(source: string): ErrorEntry[] {
  const file = ts.createSourceFile('errors.ts', source, ts.ScriptTarget.Latest, true)
  const entries: ErrorEntry[] = []
  for (const node of file.statements) {
    if (!ts.isClassDeclaration(node) || node.name === undefined) continue
    const parent = node.heritageClauses?.[0]?.types[0]?.expression.getText() ?? ''
    const inherited = entries.find((entry) => entry.name === parent)?.retryable ?? 'no'
    const [doc] = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc)
    const remarks = ts.getJSDocTags(node).find((tag) => tag.tagName.text === 'remarks')
    entries.push({
      name: node.name.text,
      parent,
      code: textOf(memberOf(node, 'code')),
      retryable: retryableOf(node, inherited),
      meaning: plain(ts.getTextOfJSDocComment(doc?.comment)),
      remedy: plain(ts.getTextOfJSDocComment(remarks?.comment)),
    })
  }
  return entries
}

/** The page of all errors. */
export function errorsPage(source: string): string {
  const entries = readErrors(source)
  const families = entries.filter((entry) => entry.parent === 'ThreadmillError')
  return [
    '# Errors',
    '<!-- Made by `npm run docs` from src/errors.ts. Change the docstrings there. -->',
    'Everything that Threadmill throws by itself is a `ThreadmillError` with a stable `code`, a `retryable`, and a message that ' +
      'says what happened and what to do. What a tool, a hook or a callback of yours threw comes out unchanged. Where an ' +
      'error ended a turn, its code and message are in `chat.failure()`.',
    '`retryable` says whether the same act can succeed later without anyone changing anything. A failed turn whose error is ' +
      'retryable is run again by itself; see [When it fails](../../README.md#when-it-fails).',
    ...families.flatMap((family) => [`## ${family.name}`, family.meaning, familyTable(entries, family.name)]),
  ]
    .join('\n\n')
    .concat('\n')
}

function familyTable(entries: readonly ErrorEntry[], family: string): string {
  const within = new Set([family])
  const rows: string[][] = []
  for (const entry of entries) {
    if (!within.has(entry.parent)) continue
    within.add(entry.name)
    const below = entry.parent === family ? '' : ` (a \`${entry.parent}\`)`
    rows.push([`\`${entry.name}\`${below}`, `\`${entry.code}\``, entry.retryable, entry.meaning, entry.remedy])
  }
  return table(['class', 'code', 'retryable', 'meaning', 'what to do'], rows)
}

function memberOf(node: ts.ClassDeclaration, name: string): ts.PropertyDeclaration | undefined {
  return node.members.filter(ts.isPropertyDeclaration).find((member) => member.name.getText() === name)
}

function textOf(property: ts.PropertyDeclaration | undefined): string | null {
  const value = property?.initializer
  return value !== undefined && ts.isStringLiteral(value) ? value.text : null
}

function retryableOf(node: ts.ClassDeclaration, inherited: ErrorEntry['retryable']): ErrorEntry['retryable'] {
  const property = memberOf(node, 'retryable')
  if (property === undefined) return inherited
  if (property.initializer === undefined) return 'varies'
  return property.initializer.kind === ts.SyntaxKind.TrueKeyword ? 'yes' : 'no'
}

/** One line, with links as code. */
function plain(text: string | undefined): string {
  return (text ?? '')
    .replace(/\{@link (\w+)\}/g, '`$1`')
    .replace(/\s+/g, ' ')
    .trim()
}
