import { expect } from 'chai'
import type { Memory } from './counts.ts'

/** How much a heap may differ from itself: compiled code and the caches of libraries come and go. */
const heapShare = 1.05

/**
 * Checks that memory is what it was, so many turns or other pieces of work later.
 * @param perPiece how many objects of any kind may be kept for each of them; of promises, signals, maps and sets one in ten at most.
 * @param slack how many objects more: compiled code has some, too.
 */
export function expectKept(
  what: string,
  [begin, end]: readonly [Memory, Memory],
  { pieces, perPiece, slack }: { readonly pieces: number; readonly perPiece: number; readonly slack: number },
): void {
  expect(end.heapUsed, `${what}: bytes of heap`).to.be.at.most(begin.heapUsed * heapShare)
  for (const [kind, count] of Object.entries(end.objects)) {
    const most = kind === 'Object' ? perPiece * pieces + slack : 0.1 * pieces + 20
    expect(count - (begin.objects[kind] ?? 0), `${what}: objects of the kind ${kind} that are kept`).to.be.at.most(most)
  }
}
