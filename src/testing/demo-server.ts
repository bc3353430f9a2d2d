import { demoModel } from './demo-model.ts'
import { startModelServer } from './model-server.ts'

// A child process that serves the demo model: prints `READY <url>` and ends with its parent, however that one ends.
// `--chunk-delay <ms>` sets the pace.

const at = process.argv.indexOf('--chunk-delay')
const given = at < 0 ? undefined : Number(process.argv[at + 1])
const pace = given === undefined || Number.isNaN(given) ? {} : { chunkDelayMs: given }

async function serve(): Promise<void> {
  const server = await startModelServer({ respond: demoModel(pace) })
  const leave = (): void => {
    void server.close().then(() => process.exit(0))
  }
  if (process.connected) {
    process.once('disconnect', leave)
  } else {
    process.stdin.once('end', leave).once('close', leave).once('error', leave).resume()
  }
  // Ctrl-C reaches the whole process group; the parent may still be finishing answers and ends this process itself.
  if (!process.stdin.isTTY) process.on('SIGINT', () => {})

  process.stdout.write(`READY ${server.url}\n`)
}

void serve()
