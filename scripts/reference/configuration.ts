import type { SettingSpec } from '../../config/settings-table.ts'
import { table } from './table.ts'

/** The page of all settings. */
export function configurationPage(settings: Readonly<Record<string, SettingSpec>>): string {
  const rows = Object.entries(settings).map(([name, spec]) => [
    `\`${name}\``,
    `\`${spec.env}\``,
    spec.default === null ? 'none' : String(spec.default),
    spec.unit ?? (spec.kind === 'integer' ? 'number' : spec.kind),
    spec.right,
    `${spec.description}${spec.secret ? ' Secret: never shown.' : ''}`,
  ])
  return [
    '# Configuration',
    '<!-- Made by `npm run docs` from config/settings-table.ts. Change the table there. -->',
    'Each setting is an option of `Threadmill.connect` and a variable of the environment. An option wins over the variable, ' +
      'the variable over the default; a blank variable counts as missing. All that is wrong is reported at once, in one ' +
      '`ConfigurationError`. Commands take some of them as options too: `threadmill worker --help`.',
    table(['option', 'variable', 'default', 'unit', 'must be', 'meaning'], rows),
    '`NODE_ENV=production` turns embedded services off unless `THREADMILL_EMBEDDED=true`. `NO_COLOR` turns the colours of ' +
      'commands off. Threadmill reads nothing else of the environment, and no file of variables.',
    'Options that are no plain settings (`agents`, `tools`, `migrate`, `sequelize`, `redis`, `extend`, `logger` and others) ' +
      'have no variable: see [your own infrastructure](../guides/your-infrastructure.md) and ' +
      '[observability](../guides/observability.md), and `ConnectOptions` in the API reference (`npm run docs`).',
  ]
    .join('\n\n')
    .concat('\n')
}
