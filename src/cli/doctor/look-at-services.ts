import { resolve } from 'node:path'
import { z } from 'zod'
import { isServing, readAddress } from '../../../config/embedded/address.ts'
import { redisConnector } from '../../../config/redis.ts'
import { describeTarget, type RedisClient } from '../../../config/redis-clients.ts'
import type { Settings } from '../../../config/settings.ts'
import { parseRedisUrl, UrlProblem } from '../../../config/urls.ts'
import { complaintOf } from '../complain.ts'
import type { ModelFacts, RedisFacts, Unusable } from './facts.ts'
import { clockOf } from './measure-clock.ts'

const readyWithinMs = 5_000
const modelLimitMs = 15_000

/** Looks at Redis, and starts none. */
export async function lookAtRedis(settings: Settings): Promise<RedisFacts | Unusable> {
  if (settings.redisUrl !== null) return lookAt(settings.redisUrl, null)
  if (!settings.embedded) {
    return { kind: 'unusable', place: 'REDIS_URL', why: 'it is not set, and embedded services are off', missing: false }
  }
  const address = await readAddress(resolve(settings.dataDir))
  if (address === null || !(await isServing(address))) {
    return { kind: 'unusable', place: settings.dataDir, why: 'no embedded Redis runs at present', missing: true }
  }
  return lookAt(`redis://127.0.0.1:${address.port}/0`, address.kind)
}

async function lookAt(redisUrl: string, embedded: string | null): Promise<RedisFacts | Unusable> {
  const target = parseRedisUrl(redisUrl)
  const place = target instanceof UrlProblem ? 'REDIS_URL' : describeTarget(target)
  const redis = redisConnector({ redisUrl }, { readyWithinMs })
  try {
    const client = await redis.producer()
    const info = await client.info().catch(() => '')
    const says = (name: string) => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1] ?? null
    return {
      kind: 'redis',
      place,
      embedded,
      version: says('redis_version'),
      policy: says('maxmemory_policy'),
      persists: await persists(client, says('aof_enabled')),
      clock: await clockOf(async () => {
        const [seconds, micros] = await client.time()
        return Number(seconds) * 1_000 + Number(micros) / 1_000
      }),
    }
  } catch (error) {
    return { kind: 'unusable', place, why: complaintOf(error).message, missing: false }
  } finally {
    await redis.close()
  }
}

/** Hosted servers often keep their configuration to themselves. */
async function persists(client: RedisClient, aof: string | null): Promise<boolean | null> {
  if (aof === '1') return true
  const saves = await client.config('GET', 'save').catch(() => null)
  if (!Array.isArray(saves) || saves.length < 2) return null
  return saves[1] !== ''
}

const list = z.object({ data: z.array(z.object({ id: z.string() })) })

/** Asks the endpoint which models it has, which costs nothing. */
export async function lookAtModel({ openaiApiKey, openaiBaseUrl, model }: Settings): Promise<ModelFacts> {
  const base = new URL(openaiBaseUrl ?? 'https://api.openai.com/v1')
  const place = base.host
  const nothing = { place, wanted: model, listed: null }
  if (openaiApiKey === null && openaiBaseUrl === null) {
    return { ...nothing, status: null, why: 'neither OPENAI_API_KEY nor OPENAI_BASE_URL is set' }
  }
  try {
    const response = await fetch(`${base.href.replace(/\/$/, '')}/models`, {
      headers: openaiApiKey === null ? {} : { authorization: `Bearer ${openaiApiKey}` },
      signal: AbortSignal.timeout(modelLimitMs),
    })
    const parsed = list.safeParse(await response.json().catch(() => null))
    const listed = parsed.success ? parsed.data.data.map(({ id }) => id) : null
    return { ...nothing, listed, status: response.status, why: null }
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
    return { ...nothing, status: null, why: complaintOf(cause).message }
  }
}
