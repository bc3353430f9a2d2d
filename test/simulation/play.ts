import { Application } from './app.ts'
import { busyMs, type Plan } from './plan.ts'
import { faultAtEnd, faultAtRest, isAtRest, settle } from './rest.ts'
import { calmAtMs, restWithinMs } from './times.ts'
import { World, type WorldOptions } from './world.ts'

export interface Played {
  /** What was wrong; null = nothing. */
  readonly violation: string | null
  /** What happened, a line each; empty unless it was asked for. */
  readonly lines: readonly string[]
}

/** Most rounds in which people decide what waits and try again what failed: a plan can hold its chats up so often and no more. */
const settlings = 60

/**
 * Plays a plan to its end: all that is said is answered, all that waits is decided, nothing is left.
 * @param options.bug is planted before it begins; `options.file` holds the rows, by the real statements.
 */
export async function play(
  plan: Plan,
  { traced = false, bug, file = null }: Partial<WorldOptions> = {},
): Promise<Played> {
  const world = new World(plan, { traced, bug, file })
  const app = new Application(world)
  world.start()
  app.start()
  await unfold(world, app)
  return { violation: world.monitor.violation, lines: world.lines ?? [] }
}

async function unfold(world: World, app: Application): Promise<void> {
  const { scheduler, monitor } = world
  const isOver = () => monitor.violation !== null
  const isDone = () => isOver() || (scheduler.now > busyMs && isAtRest(world, app))
  await scheduler.run(isDone, calmAtMs)
  world.calm()
  for (let rounds = 0; !isOver(); rounds++) {
    const rested = await scheduler.run(() => isOver() || isAtRest(world, app), scheduler.now + restWithinMs)
    if (isOver()) return
    if (!rested) return monitor.violate('the world does not come to rest')
    const fault = faultAtRest(world, app)
    if (fault !== null) return monitor.violate(fault)
    if (!settle(world, app)) break
    if (rounds > settlings) return monitor.violate('what waits for people never ends')
  }
  const fault = faultAtEnd(world)
  if (fault !== null) monitor.violate(fault)
}
