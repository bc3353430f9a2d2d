import type { Cli } from '../cli.ts'
import type { DoctorOptions } from '../commands/doctor.ts'
import { withoutSecrets } from '../complain.ts'
import { exitCodes } from '../exit-codes.ts'
import { checkMigrations, checkPrefixes, checkServer, checkSession, checkText } from './check-database.ts'
import { checkClock, checkNode, checkVersions } from './check-process.ts'
import { checkEviction, checkModel, checkPersistence, checkRedis, checkUnusable } from './check-services.ts'
import type { DatabaseFacts, Finding, RedisFacts, SetUp, Status, Unusable } from './facts.ts'
import { lookAtDatabase } from './look-at-database.ts'
import { lookAtProcess } from './look-at-process.ts'
import { lookAtModel, lookAtRedis } from './look-at-services.ts'

/** Looks at everything that Threadmill runs on, changes nothing, and says what is wrong and what puts it right. */
export async function runDoctor(cli: Cli, options: DoctorOptions): Promise<void> {
  const { model: asksModel, ...others } = options
  // What is missing is one of the findings.
  const settings = cli.settings(others, { database: true, redis: true })
  const own = lookAtProcess()
  const [database, redis, model] = await Promise.all([
    lookAtDatabase(settings),
    lookAtRedis(settings),
    asksModel ? lookAtModel(settings) : null,
  ])
  const findings = [
    checkNode(own),
    checkVersions(own),
    ...ofDatabase(database, settings),
    ...ofRedis(redis),
    ...(model === null ? [] : [checkModel(model)]),
  ].map((finding) => ({ ...finding, what: withoutSecrets(finding.what) }))
  const status = worst(findings)
  if (options.json) cli.json({ status, checks: findings })
  else show(cli, findings)
  if (status === 'fail') cli.exitCode = exitCodes.failed
}

function ofDatabase(database: DatabaseFacts | Unusable, setUp: SetUp): Finding[] {
  if (database.kind === 'unusable') return [checkUnusable('database', database)]
  return [
    checkServer(database),
    checkClock('database', database.clock),
    checkMigrations(database),
    checkPrefixes(database, setUp),
    checkSession(database),
    checkText(database),
  ]
}

function ofRedis(redis: RedisFacts | Unusable): Finding[] {
  if (redis.kind === 'unusable') return [checkUnusable('redis', redis)]
  return [checkRedis(redis), checkClock('redis', redis.clock), checkEviction(redis), checkPersistence(redis)]
}

function worst(findings: readonly Finding[]): Status {
  return (['fail', 'warn'] as const).find((status) => findings.some((one) => one.status === status)) ?? 'ok'
}

const colours = { ok: 'green', warn: 'yellow', fail: 'red' } as const

function show(cli: Cli, findings: readonly Finding[]): void {
  for (const { name, status, what, fix } of findings) {
    cli.line(`${cli.paint(colours[status], status.padEnd(6))}${name.padEnd(19)}${what}`)
    if (fix !== null) cli.line(`${' '.repeat(25)}${fix}`)
  }
}
