import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { calculate } from '../../../src/cli/demo/calculator.ts'
import { zoneOf } from '../../../src/cli/demo/clock.ts'
import { readInside } from '../../../src/cli/demo/read-file.ts'
import { ToolError } from '../../../src/index.ts'

/** The text of the ToolError that it throws, now or later. */
async function complaint(work: () => unknown): Promise<string> {
  try {
    await work()
  } catch (error) {
    expect(error).to.be.instanceOf(ToolError)
    return (error as ToolError).message
  }
  throw new Error('it should have thrown')
}

describe("The demo's calculator", () => {
  const sums: readonly (readonly [string, string])[] = [
    ['12 * 7', '84'],
    ['3.5 + 4', '7.5'],
    ['0.1 + 0.2', '0.3'],
    ['1 + 2 * 3', '7'],
    ['(2 + 3) * 4', '20'],
    ['10 - 4 - 3', '3'],
    ['10 / 4', '2.5'],
    ['1 / 3', '0.333333333333333'],
    ['17 % 5', '2'],
    ['2 ^ 10', '1024'],
    ['2 ** 10', '1024'],
    ['2 ^ 3 ^ 2', '512'],
    ['-2 ^ 2', '-4'],
    ['-3 + 5', '2'],
    ['2 ^ -1', '0.5'],
    ['.5*4', '2'],
  ]
  for (const [expression, value] of sums) {
    it(`says that ${expression} is ${value}`, () => expect(calculate(expression)).to.equal(value))
  }

  for (const [expression, why] of [
    ['1 / 0', 'divide by zero'],
    ['0 ^ -1', 'divide by zero'],
    ['2 ^ 0.5', 'whole powers'],
    ['2 ^ 100000', 'whole powers'],
    ['1 +', 'it ends too early'],
    ['(1 + 2', 'it ends too early'],
    ['1 2', '"2" does not belong there'],
    ['process.exit()', '"p" does not belong there'],
    ['', 'it ends too early'],
    ['1+'.repeat(200), 'longer than'],
  ] as const) {
    it(`refuses ${expression.slice(0, 20)}: ${why}`, async () => {
      expect(await complaint(() => calculate(expression))).to.include(why)
    })
  }
})

describe("The demo's clock", () => {
  for (const [city, zone] of [
    ['Tokyo', 'Asia/Tokyo'],
    ['new york', 'America/New_York'],
    ['São Paulo', 'America/Sao_Paulo'],
    ['San Francisco', 'America/Los_Angeles'],
    ['Portland, Oregon', 'America/Los_Angeles'],
    ['Europe/Paris', 'Europe/Paris'],
    ['UTC', 'UTC'],
  ] as const) {
    it(`finds ${zone} for ${city}`, () => expect(zoneOf(city)).to.equal(zone))
  }

  it('knows no zone of a place that does not exist', () => expect(zoneOf('Atlantis')).to.equal(null))
})

describe("The demo's reading of files", () => {
  let outside = ''
  let folder = ''
  before(async () => {
    outside = await mkdtemp(join(tmpdir(), 'demo-files-'))
    folder = join(outside, 'inside')
    await mkdir(join(folder, 'docs'), { recursive: true })
    await mkdir(join(folder, '.secret'))
    await writeFile(join(outside, 'other.txt'), 'not yours')
    await writeFile(join(folder, 'docs/notes.txt'), 'buy milk')
    await writeFile(join(folder, '.env'), 'KEY=1')
    await writeFile(join(folder, '.secret/key.txt'), 'KEY=1')
    await writeFile(join(folder, 'large.txt'), 'x'.repeat(40_000))
    await writeFile(join(folder, 'image.png'), Buffer.from([1, 0, 2]))
    await symlink(join(outside, 'other.txt'), join(folder, 'link.txt'))
    execFileSync('mkfifo', [join(folder, 'pipe')])
  })
  after(() => rm(outside, { recursive: true, force: true }))

  it('reads a file of the folder, by a relative or a whole path', async () => {
    expect(await readInside(folder, 'docs/notes.txt')).to.equal('buy milk')
    expect(await readInside(folder, join(folder, 'docs/../docs/notes.txt'))).to.equal('buy milk')
  })

  for (const [path, why] of [
    ['../other.txt', 'outside the current folder'],
    ['/etc/hostname', 'outside the current folder'],
    ['link.txt', 'outside the current folder'],
    ['.', 'outside the current folder'],
    ['.env', 'hidden'],
    ['.secret/key.txt', 'hidden'],
    ['missing.txt', 'no file missing.txt'],
    ['docs/notes.txt/more', 'no file'],
    ['docs', 'not a file'],
    ['pipe', 'not a file'],
    ['large.txt', '40000 bytes: I read files of at most 32768'],
    ['image.png', 'not a text file'],
  ] as const) {
    it(`refuses ${path}: ${why}`, async () => {
      expect(await complaint(() => readInside(folder, path))).to.include(why)
    })
  }
})
