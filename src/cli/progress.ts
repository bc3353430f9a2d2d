import { SingleBar } from 'cli-progress'
import type { Output } from './io.ts'

/** How far a long command is. */
export interface Progress {
  /** One more is done. */
  step(): void
  /** Takes the bar away. */
  stop(): void
}

const silent: Progress = { step() {}, stop() {} }

/** A bar on a terminal; elsewhere, and for a single thing, nothing. */
export function progressOf(stream: Output, total: number, what: string): Progress {
  if (stream.isTTY !== true || total < 2) return silent
  const bar = new SingleBar({
    stream,
    format: `{bar} {value} of {total} ${what}, {eta_formatted} left`,
    clearOnComplete: true,
    hideCursor: true,
    etaBuffer: 100,
    // Signals are the command's own.
    gracefulExit: false,
  })
  bar.start(total, 0)
  return { step: () => bar.increment(), stop: () => bar.stop() }
}
