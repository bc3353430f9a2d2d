const { reporters, Runner } = require('mocha')

const { EVENT_TEST_FAIL, EVENT_TEST_PASS, EVENT_TEST_PENDING } = Runner.constants

// How long a process may live on after its last test before it is ended and counted as a failure.
const EXIT_MS = 10_000

/**
 * Mocha's spec reporter, and after it what was left out and the line `N passed, N failed, N skipped`. That line is
 * written while the process exits, so that nothing comes after it and a run that broke off can't pass for a whole one.
 */
class SummaryReporter extends reporters.Spec {
  #seen = 0
  #extraFailures = 0
  #handlesLeft = false
  #leftOut = []

  constructor(runner, options) {
    super(runner, options)
    runner.on(EVENT_TEST_PASS, () => this.#seen++)
    runner.on(EVENT_TEST_PENDING, (test) => {
      this.#seen++
      this.#leftOut.push(test)
    })
    runner.on(EVENT_TEST_FAIL, (failed, error) => {
      if (failed.type !== 'hook') this.#seen++
      if (error?.code === 'ERR_HANDLES_LEFT') this.#handlesLeft = true
    })
    this.brokeOff = () => this.#end('The run broke off before its last test.')
    process.on('exit', this.brokeOff)
  }

  epilogue() {
    super.epilogue()
    this.#listLeftOut()
    const lost = this.runner.total - this.#seen
    if (this.stats.failures > 0 && lost > 0) print(`  Not run, because a hook failed before them: ${lost} tests\n`)
  }

  done(failures, exit) {
    process.off('exit', this.brokeOff)
    exit(failures)
    // Listens after mocha, which sets the exit code from the failures that it knows of.
    process.on('exit', () => this.#end(null))
    setTimeout(() => this.#forceExit(), this.#handlesLeft ? 0 : EXIT_MS).unref()
  }

  #forceExit() {
    if (!this.#handlesLeft) this.#fail(`The process did not end within ${EXIT_MS / 1000} s of its last test.`)
    process.exit(1)
  }

  #fail(problem) {
    this.#extraFailures += 1
    print(`  ${problem}\n`)
  }

  #end(problem) {
    if (problem) this.#fail(problem)
    const { passes, failures, pending } = this.stats
    const failed = failures + this.#extraFailures
    if (this.#extraFailures > 0) process.exitCode = 1
    print(`${passes} passed, ${failed} failed${pending > 0 ? `, ${pending} skipped` : ''}`)
  }

  #listLeftOut() {
    if (this.#leftOut.length === 0) return
    const suites = groupBy(this.#leftOut, suiteOf)
    print('  Left out:')
    for (const [suite, tests] of suites) {
      print(`    ${suite}`)
      for (const test of tests) print(`      - ${test.title}`)
    }
    print('')
  }
}

function suiteOf(test) {
  return test.titlePath().slice(0, -1).join(' > ')
}

function groupBy(items, keyOf) {
  const groups = new Map()
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item])
  return groups
}

function print(line) {
  process.stdout.write(`${line}\n`)
}

module.exports = SummaryReporter
