import { type Command, Option } from 'commander'
import type { ConnectOptions } from '../../config/settings.ts'
import { type SettingName, type SettingSpec, settingsTable } from '../../config/settings-table.ts'

/** Settings that every command which reaches the database and Redis takes as options. */
export const connectionSettings = [
  'databaseUrl',
  'redisUrl',
  'tablePrefix',
  'redisPrefix',
  'dataDir',
] as const satisfies readonly SettingName[]

/** Adds an option for each setting, named and described as the table of settings says. */
export function addSettingOptions(command: Command, names: readonly SettingName[]): Command {
  command.optionsGroup('Settings (the variable in brackets does the same):')
  for (const name of names) command.addOption(settingOption(name))
  return command.optionsGroup('Options:')
}

function settingOption(name: SettingName): Option {
  const spec: SettingSpec = settingsTable[name]
  const fallback = spec.default === null ? '' : ` Default: ${spec.default}.`
  const option = new Option(
    `--${kebab(name)} <${placeholder(name, spec)}>`,
    `${spec.description}${fallback} [${spec.env}]`,
  )
  // What is no number stays as it is: the check of the settings words the complaint, and shows no secret.
  return spec.kind === 'integer' ? option.argParser((text) => (/^[+-]?\d+$/.test(text) ? Number(text) : text)) : option
}

function placeholder(name: SettingName, spec: SettingSpec): string {
  if (name.endsWith('Url')) return 'url'
  if (spec.kind === 'integer') return spec.unit ?? 'number'
  return name.endsWith('Dir') ? 'path' : 'text'
}

/** `claimTtlMs` is `claim-ttl-ms` on the command line. */
export function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

/** Of the options of a command, those that are settings. */
export function settingsAmong(options: Readonly<Record<string, unknown>>): ConnectOptions {
  return Object.fromEntries(Object.entries(options).filter(([name]) => name in settingsTable))
}
