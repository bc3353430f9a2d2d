import ts from 'typescript'

/** The places in a declaration file where a type is `any`, such as `12`. */
export function anyTypes(text: string): number[] {
  return linesOf(text, (node) => node.kind === ts.SyntaxKind.AnyKeyword)
}

/** The lines on which a module waits while it is loaded. */
export function topLevelAwaits(text: string): number[] {
  return linesOf(
    text,
    (node) => ts.isAwaitExpression(node) || (ts.isForOfStatement(node) && node.awaitModifier !== undefined),
    ts.isFunctionLike,
  )
}

function linesOf(
  text: string,
  matches: (node: ts.Node) => boolean,
  skips: (node: ts.Node) => boolean = () => false,
): number[] {
  const file = ts.createSourceFile('file.ts', text, ts.ScriptTarget.Latest)
  const found: number[] = []
  const visit = (node: ts.Node): void => {
    if (skips(node)) return
    if (matches(node)) found.push(file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1)
    ts.forEachChild(node, visit)
  }
  visit(file)
  return found
}
