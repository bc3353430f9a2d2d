// Who may import whom. A level imports itself and the levels before it, never one after it; types count too.
const levels = [
  ['config', '^config/'],
  ['models', '^models/'],
  ['parts', '^src/(messages|attachments|claims|providers|tools|mcp|usage|events|observability)/'],
  ['loop', '^src/loop/'],
  ['chat', '^src/chat/'],
  ['workers', '^workers/'],
  ['front', '^src/(server|cli)/'],
]
const errors = '^src/errors[.]ts$'
const testing = '^src/testing/'
// It runs whole applications, so it is a root of its own.
const crashes = '^src/testing/crashes/'
const roots = '^src/(threadmill|connect-options|start-workers|only-process|open|open-rows|index|migrations)[.]ts$'
const compositionRoots = `${roots}|^src/cli/`

const typesOnly = ['type-only']
const pure = '^src/loop/decide[.]ts$|^src/messages/|^src/providers/[^/]+/(render|read)[.]ts$'

const upward = levels.slice(0, -1).map(([name, path], at) => ({
  name: `${name}-imports-no-later-level`,
  comment: `${name} knows nothing of ${levels
    .slice(at + 1)
    .map(([later]) => later)
    .join(', ')}: move what both need down.`,
  severity: 'error',
  from: { path },
  to: { path: levels.slice(at + 1).map(([, later]) => later) },
}))

const siblings = ['claims', 'providers', 'tools', 'usage', 'events'].map((name) => ({
  name: `${name}-runs-no-sibling`,
  comment: 'The parts meet in src/loop: at run time one part does not import another. Types are free.',
  severity: 'error',
  from: { path: `^src/${name}/` },
  to: {
    path: '^src/(claims|providers|tools|mcp|usage|events)/',
    pathNot: `^src/${name}/`,
    dependencyTypesNot: typesOnly,
  },
}))

/** A package that only the named files may import. */
function onlyIn(name, allowed, more = {}) {
  return {
    name: `${name}-only-where-it-belongs`,
    comment: `Import ${name} in ${allowed} alone, and pass on what it makes.`,
    severity: 'error',
    from: { pathNot: allowed },
    to: { path: `^node_modules/${name}/`, ...more },
  }
}

module.exports = {
  forbidden: [
    ...upward,
    ...siblings,
    {
      name: 'every-file-has-a-level',
      comment: 'A file outside the known folders would escape the rules: put it into one, or give the folder a level.',
      severity: 'error',
      from: { path: '^src/', pathNot: [...levels.map(([, path]) => path), errors, testing, roots] },
      to: {},
    },
    {
      name: 'errors-is-a-leaf',
      comment: 'All may import src/errors.ts, so it imports nothing.',
      severity: 'error',
      from: { path: errors },
      to: {},
    },
    {
      name: 'lower-levels-know-no-root',
      comment: 'The roots put the parts together; a part that needs something of them is given it.',
      severity: 'error',
      from: { path: levels.slice(0, 4).map(([, path]) => path) },
      to: { path: roots },
    },
    {
      name: 'chat-knows-roots-as-types',
      comment: 'src/chat is made by the application object and may name its type only.',
      severity: 'error',
      from: { path: '^src/chat/' },
      to: { path: roots, dependencyTypesNot: typesOnly },
    },
    {
      name: 'server-knows-no-command',
      comment: 'The commands start the server, not the other way round.',
      severity: 'error',
      from: { path: '^src/server/' },
      to: { path: '^src/cli/' },
    },
    {
      name: 'messages-run-nothing-else',
      comment: 'Messages are values: of the other parts they may name types only.',
      severity: 'error',
      from: { path: '^src/messages/' },
      to: {
        path: '^src/(attachments|claims|providers|tools|mcp|usage|events)/',
        dependencyTypesNot: typesOnly,
      },
    },
    {
      name: 'testing-stands-alone',
      comment:
        'src/testing is for the tests of applications: of Threadmill it may name types of providers only. src/testing/crashes connects and starts workers, as an application does.',
      severity: 'error',
      from: { path: testing, pathNot: crashes },
      to: { path: '^(config|models|workers|src)/', pathNot: [testing, errors, '^src/providers/'] },
    },
    {
      name: 'testing-runs-no-provider',
      comment: 'src/testing plays the model over HTTP, so that the real provider code is what is tested.',
      severity: 'error',
      from: { path: testing },
      to: { path: '^src/providers/', dependencyTypesNot: typesOnly },
    },
    {
      name: 'library-runs-no-testing',
      comment: 'Scripted models are for tests and the demo; only the composition roots may start one.',
      severity: 'error',
      from: { path: '^(config|models|workers|src)/', pathNot: [testing, compositionRoots] },
      to: { path: testing },
    },
    {
      name: 'only-the-entry-of-testing-knows-crashes',
      comment:
        'The scripted model stands alone: whoever starts one, the demo for one, must not get worker processes with it.',
      severity: 'error',
      from: { pathNot: [crashes, '^src/testing/index[.]ts$'] },
      to: { path: crashes },
    },
    {
      name: 'pure-files-do-no-io',
      comment: 'Deciding, message values, rendering and reading are functions of their input.',
      severity: 'error',
      from: { path: pure },
      to: {
        path: [
          '^(node:)?(child_process|cluster|dgram|dns|fs|http|http2|https|inspector|net|os|process|readline|repl)(/|$)',
          '^(node:)?(timers|tls|tty|worker_threads)(/|$)',
          '^node_modules/(bullmq|ioredis|js-redis-server|libsql|mysql2|openai|pino|redlock|sequelize|umzug)/',
          '^(config|workers|src/(claims|events|server|cli))/',
        ],
        dependencyTypesNot: typesOnly,
      },
    },
    {
      name: 'pure-files-run-no-statements',
      comment: 'Rows come in as values: of models/ only types and src/../models/rows.ts.',
      severity: 'error',
      from: { path: pure },
      to: { path: '^models/', pathNot: '^models/rows[.]ts$', dependencyTypesNot: typesOnly },
    },
    onlyIn('openai', '^src/providers/openai[.]ts$', { dependencyTypesNot: typesOnly }),
    {
      ...onlyIn('openai', '^src/providers/', { dependencyTypes: typesOnly }),
      name: 'openai-types-only-in-providers',
    },
    onlyIn('prom-client', '^src/observability/', { dependencyTypesNot: typesOnly }),
    onlyIn('@opentelemetry', '^src/observability/|^workers/queue-telemetry[.]ts$', { dependencyTypesNot: typesOnly }),
    {
      name: 'what-is-off-is-not-loaded',
      comment: 'Metrics and traces are loaded by import() when they are asked for, and cost nothing otherwise.',
      severity: 'error',
      from: { pathNot: '^src/observability/(metrics|tracing)/|^workers/queue-telemetry[.]ts$' },
      to: {
        path: '^src/observability/(metrics|tracing)/|^workers/queue-telemetry[.]ts$|^node_modules/(prom-client|@opentelemetry|bullmq-otel)/',
        dynamic: false,
        dependencyTypesNot: typesOnly,
      },
    },
    {
      name: 'observability-runs-no-sibling',
      comment: 'All parts may tell what they do; what they tell to runs none of them.',
      severity: 'error',
      from: { path: '^src/observability/' },
      to: {
        path: '^src/(messages|attachments|claims|providers|tools|mcp|usage|events)/',
        dependencyTypesNot: typesOnly,
      },
    },
    onlyIn('redlock', '^src/claims/claim-lock[.]ts$'),
    onlyIn('bullmq', '^workers/|^src/(threadmill|open)[.]ts$'),
    {
      name: 'no-cycle-at-run-time',
      comment: 'Which file of a cycle runs first depends on who imports it; cut it, or import a type.',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: typesOnly } },
    },
    {
      name: 'no-undeclared-package',
      comment:
        'What the library runs must be in dependencies of package.json, not in devDependencies or by chance. The client of S3 is a peer that may be left out.',
      severity: 'error',
      from: { path: '^(config|models|workers|src)/' },
      to: {
        dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'],
        dependencyTypesNot: typesOnly,
        pathNot: '^node_modules/@aws-sdk/client-s3/',
      },
    },
    onlyIn('@aws-sdk/client-s3', '^src/attachments/s3-store[.]ts$'),
    {
      name: 'the-client-of-s3-is-not-loaded-before-its-use',
      comment: 'It is a peer that may be left out.',
      severity: 'error',
      from: {},
      to: { path: '^node_modules/@aws-sdk/', dynamic: false, dependencyTypesNot: typesOnly },
    },
    {
      name: 'no-unresolvable-import',
      comment: 'The imported file or package does not exist.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['threadmill-source', 'import', 'node', 'default', 'types'],
    },
  },
}
