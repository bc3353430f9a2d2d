import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { execa } from 'execa'
import { demoModelName, startDemoModel } from '../../src/testing/index.ts'
import { clientOf, failureOf, hello, readStream } from './support.ts'

const entry = fileURLToPath(new URL('../../src/testing/demo-server.ts', import.meta.url))
const index = new URL('../../src/testing/index.ts', import.meta.url).href

describe('The demo model in a process of its own', function () {
  this.timeout(30_000)

  it('answers until it is stopped', async () => {
    const demo = await startDemoModel({ chunkDelayMs: 0 })
    try {
      const stream = await readStream(clientOf(demo))
      expect(stream.text).to.contain('You said: Hello')
      expect(stream.chunks[0]?.model).to.equal(demoModelName)
    } finally {
      await demo.stop()
    }
    await demo.stop()
    const error = await failureOf(clientOf(demo).chat.completions.create(hello))
    expect(error.constructor.name).to.equal('APIConnectionError')
  })

  it('ends when its standard input is closed, and not by Ctrl-C before', async () => {
    const child = execa(process.execPath, ['--import', 'tsx', entry], { stdin: 'pipe', timeout: 20_000 })
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const ready = String((await lines.next()).value)
    expect(ready).to.match(/^READY http:\/\/127\.0\.0\.1:\d+\/v1$/)
    child.kill('SIGINT')
    const stream = await readStream(clientOf({ url: ready.slice('READY '.length) }))
    expect(stream.text).to.contain('You said: Hello')
    child.stdin.end()
    expect((await child).exitCode).to.equal(0)
  })

  it('ends when the channel to its parent is closed', async () => {
    const child = execa(process.execPath, ['--import', 'tsx', entry], { ipc: true, timeout: 20_000 })
    await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next()
    child.disconnect?.()
    expect((await child).exitCode).to.equal(0)
  })

  it('does not keep its parent alive, and goes with it', async () => {
    const script = `
      import { startDemoModel } from ${JSON.stringify(index)}
      console.log((await startDemoModel()).url)`
    const parent = await execa(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
      timeout: 20_000,
    })
    const url = parent.stdout.trim()
    expect(url).to.match(/^http/)
    for (;;) {
      const gone = await fetch(url).then(
        () => false,
        () => true,
      )
      if (gone) break
    }
  })
})
