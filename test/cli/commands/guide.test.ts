import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Command } from 'commander'
import { settingsTable } from '../../../config/settings-table.ts'
import { Cli } from '../../../src/cli/cli.ts'
import { makeProgram } from '../../../src/cli/program.ts'
import { kebab } from '../../../src/cli/setting-options.ts'
import { streamsOf } from '../run-cli.ts'

const guide = readFileSync(join(import.meta.dirname, '../../../docs/guides/command-line.md'), 'utf8')
const sections = new Map(guide.split(/^## /m).map((text) => [text.slice(0, text.indexOf('\n')), text]))
const common = sections.get('All commands') ?? ''
const program = makeProgram(new Cli(streamsOf(false).io))
const commands = program.commands.filter((command) => command.name() !== 'complete')

const flagsIn = (text: string) => new Set(text.match(/(?<![\w-])--[a-z][a-z-]+/g))
const flagsOf = (command: Command) => command.options.map(({ long }) => long ?? '')

describe('docs/guides/command-line.md', () => {
  it('has a section, and a line in its table, for every command and none for what is gone', () => {
    const names = commands.map((command) => `threadmill ${command.name()}`)
    expect([...sections.keys()].filter((title) => title.startsWith('threadmill ')).toSorted()).to.deep.equal(
      names.toSorted(),
    )
    for (const name of names) expect(guide).to.include(`| \`${name}\` |`)
  })

  for (const command of commands) {
    it(`names every option of ${command.name()}, and no other`, () => {
      const section = sections.get(`threadmill ${command.name()}`) ?? ''
      const known = new Set([...flagsOf(command), ...Object.keys(settingsTable).map((name) => `--${kebab(name)}`)])
      const documented = new Set([...flagsIn(section), ...flagsIn(common)])
      expect(flagsOf(command).filter((flag) => !documented.has(flag))).to.deep.equal([])
      expect([...flagsIn(section)].filter((flag) => !known.has(flag))).to.deep.equal([])
    })
  }
})
