import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'

const folders = ['src', 'src/chat', 'src/loop', 'src/messages', 'models', 'workers']

/** The signatures of everything public that classes and interfaces of the sources have, by `Class.member`. */
export function readSignatures(root: string): ReadonlyMap<string, string> {
  const members = new Map<string, Map<string, string>>()
  const parents = new Map<string, string[]>()
  for (const folder of folders) {
    for (const name of readdirSync(join(root, folder)).filter((file) => file.endsWith('.ts'))) {
      const text = readFileSync(join(root, folder, name), 'utf8')
      const source = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true)
      source.forEachChild((node) => {
        if (!ts.isClassDeclaration(node) && !ts.isInterfaceDeclaration(node)) return
        const own = members.get(node.name?.text ?? '') ?? new Map<string, string>()
        members.set(node.name?.text ?? '', own)
        const types = (node.heritageClauses ?? []).flatMap((clause) => [...clause.types])
        parents.set(
          node.name?.text ?? '',
          types.map((type) => type.expression.getText(source)),
        )
        for (const member of node.members.filter(isPublic)) {
          const key = ts.isConstructorDeclaration(member) ? 'constructor' : (member.name?.getText(source) ?? '')
          if (!own.has(key)) own.set(key, signatureOf(member, source))
        }
      })
    }
  }
  const all = new Map<string, string>()
  const add = (type: string, of: string): void => {
    for (const [key, signature] of members.get(of) ?? []) {
      if (!all.has(`${type}.${key}`)) all.set(`${type}.${key}`, signature)
    }
    for (const parent of parents.get(of) ?? []) add(type, parent)
  }
  for (const type of members.keys()) add(type, type)
  return all
}

function isPublic(member: ts.ClassElement | ts.TypeElement): boolean {
  const modifiers = ts.canHaveModifiers(member) ? (ts.getModifiers(member) ?? []) : []
  const hidden = [ts.SyntaxKind.PrivateKeyword, ts.SyntaxKind.ProtectedKeyword]
  if (modifiers.some(({ kind }) => hidden.includes(kind))) return false
  if (member.name !== undefined && ts.isPrivateIdentifier(member.name)) return false
  // What is made by the library has a constructor that is nobody's business, and still can be named.
  return (
    ts.isConstructorDeclaration(member) || !ts.getJSDocTags(member).some(({ tagName }) => tagName.text === 'internal')
  )
}

function signatureOf(member: ts.Node, source: ts.SourceFile): string {
  const { parameters, type } = member as ts.MethodDeclaration
  const result = type?.getText(source) ?? ''
  if (parameters === undefined || ts.isGetAccessor(member)) return compact(result)
  const takes = parameters.map((parameter) => parameter.getText(source)).join(', ')
  return compact(`(${takes})${result === '' ? '' : `: ${result}`}`)
}

function compact(text: string): string {
  return text
    .replace(/\/\*\*.*?\*\//gs, '')
    .replace(/\s+/g, ' ')
    .replace(/\(\s+/g, '(')
    .replace(/,? \)/g, ')')
}
