import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** Clears up when this process is gone, even by SIGKILL: ends the processes named then, and removes the folder. */
export interface Janitor {
  /** From now on this one is to be ended. */
  watch(pid: number): void
  /** It has ended. */
  forget(pid: number): void
  /** Has it clear up, and resolves when it has. */
  finish(): Promise<void>
}

/** A shell that reads what is to be cleared up until its standard input closes, which happens however this process ends. */
const script = `
pids=' '
while read -r act pid; do
  case $act in
    watch) pids="$pids$pid " ;;
    forget) pids=$(printf '%s' "$pids" | sed "s/ $pid / /g") ;;
  esac
done
for pid in $pids; do kill -9 "$pid" 2>/dev/null; done
rm -rf "$1"
`

export function startJanitor(folder: string): Janitor {
  // A group of its own: Ctrl-C in a terminal must not reach it.
  const child = spawn('/bin/sh', ['-c', script, 'sh', folder], { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
  child.stdin.on('error', () => {})
  const ended = once(child, 'exit')
  return {
    watch: (pid) => void child.stdin.write(`watch ${pid}\n`),
    forget: (pid) => void child.stdin.write(`forget ${pid}\n`),
    async finish() {
      child.stdin.end()
      await ended
    },
  }
}
