import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import ts from 'typescript'

/** A block of TypeScript in a document. */
export interface Snippet {
  /** The document, relative to the project. */
  readonly document: string
  /** The line on which its code begins, from 1. */
  readonly line: number
  readonly code: string
  /** Begins with `// runs`: a whole program. */
  readonly runs: boolean
  /** Begins with `// file: NAME`: a module of its own, which other snippets of the document import by that name. */
  readonly file: string | null
  /** What it prints by the document: a block of `text` after it with one paragraph between at most. Null: not said. */
  readonly output: string | null
}

/** The documents whose code has to be true. */
export function documentsOf(root: string): string[] {
  const pages = readdirSync(join(root, 'docs'), { recursive: true }).map(String)
  return ['README.md', ...pages.filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`)]
}

/** Every block of TypeScript in a document, in its order. */
export function snippetsOf(document: string, text: string): Snippet[] {
  return [...text.matchAll(/^```(?:ts|typescript)\n([\s\S]*?)^```$/gm)].map((match) => {
    const code = match[1] ?? ''
    const behind = text.slice(match.index + match[0].length)
    return {
      document,
      line: text.slice(0, match.index).split('\n').length + 1,
      code,
      runs: code.startsWith('// runs\n'),
      file: /^\/\/ file: (\S+)\n/.exec(code)?.[1] ?? null,
      output: /^\n+(?:[^\n`#][^\n]*\n+)?```text\n([\s\S]*?)^```$/m.exec(behind)?.[1] ?? null,
    }
  })
}

/**
 * What the compiler says against the snippets, one line each, with places in the documents. Those of one document are read
 * one after the other as one module: later ones can use the names of earlier ones. Those that name a file are apart.
 */
export function compile(root: string, snippets: readonly Snippet[]): string[] {
  const options = optionsOf(root)
  const modules = new Map<string, string>()
  const documents = new Map<string, string>()
  for (const document of new Set(snippets.map((snippet) => snippet.document))) {
    const add = (name: string, parts: readonly Snippet[]): void => {
      // Beside the document, so that packages are found; blank lines keep its line numbers.
      const path = join(root, dirname(document), name)
      modules.set(path, moduleOf(parts))
      documents.set(path, document)
    }
    const own = snippets.filter((one) => one.document === document)
    for (const snippet of own) if (snippet.file !== null) add(snippet.file, [snippet])
    add(
      `${basename(document)}.snippets.ts`,
      own.filter((one) => one.file === null),
    )
  }
  const host = ts.createCompilerHost(options)
  const { fileExists, readFile, getSourceFile } = host
  host.fileExists = (name) => modules.has(name) || fileExists(name)
  host.readFile = (name) => modules.get(name) ?? readFile(name)
  host.getSourceFile = (name, languageVersion, ...more) => {
    const text = modules.get(name)
    if (text === undefined) return getSourceFile(name, languageVersion, ...more)
    // As the compiler host would for a file of a package whose type is module.
    const settings = typeof languageVersion === 'object' ? languageVersion : { languageVersion }
    return ts.createSourceFile(name, text, { ...settings, impliedNodeFormat: ts.ModuleKind.ESNext })
  }
  const program = ts.createProgram({ rootNames: [...modules.keys()], options, host })
  return [...modules.keys()].flatMap((name) => {
    const source = program.getSourceFile(name)
    const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)]
    return found.map((diagnostic) => `${documents.get(name)}:${placeOf(diagnostic)}`)
  })
}

function moduleOf(snippets: readonly Snippet[]): string {
  const lines: string[] = []
  for (const { line, code } of snippets) {
    while (lines.length < line - 1) lines.push('')
    lines.push(...code.trimEnd().split('\n'))
  }
  return `${lines.join('\n')}\nexport {}\n`
}

function optionsOf(root: string): ts.CompilerOptions {
  const file = join(root, 'tsconfig.json')
  const parsed = ts.parseJsonConfigFileContent(ts.readConfigFile(file, ts.sys.readFile).config, ts.sys, dirname(file))
  // Code of an application is compiled by its own rules; what it imports here are sources, which it would not rewrite.
  return { ...parsed.options, rewriteRelativeImportExtensions: false, erasableSyntaxOnly: false, noEmit: true }
}

function placeOf(diagnostic: ts.Diagnostic): string {
  const message = ts.flattenDiagnosticMessageText(diagnostic.messageText, ' ')
  if (diagnostic.file === undefined || diagnostic.start === undefined) return `1 ${message}`
  return `${diagnostic.file.getLineAndCharacterOfPosition(diagnostic.start).line + 1} ${message}`
}

/** The text of a document. */
export function read(root: string, document: string): string {
  return readFileSync(join(root, document), 'utf8')
}
