import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { versionAbove } from '../version.ts'
import type { ProcessFacts } from './facts.ts'

const drivers = ['sequelize', 'mysql2', 'libsql', 'ioredis', 'bullmq', 'openai']
const { resolve } = createRequire(import.meta.url)

/** What this process is made of. */
export function lookAtProcess(): ProcessFacts {
  return {
    node: process.versions.node,
    threadmill: versionAbove(import.meta.url, 'threadmill') ?? 'unknown',
    drivers: Object.fromEntries(drivers.map((name) => [name, versionOf(name)])),
  }
}

function versionOf(name: string): string | null {
  try {
    return versionAbove(pathToFileURL(resolve(name)).href, name)
  } catch {
    return null
  }
}
