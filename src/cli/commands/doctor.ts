import type { Cli, CommonOptions, Registration } from '../cli.ts'
import { connectionSettings } from '../setting-options.ts'

/** Options of `threadmill doctor`. */
export interface DoctorOptions extends CommonOptions {
  readonly model?: boolean
}

/** `threadmill doctor`: what is wrong with what Threadmill runs on. */
export const registerDoctor: Registration = (program, cli) => {
  const command = program
    .command('doctor')
    .description('look at the database, Redis, clocks, versions and settings, and say what to put right')
    .option('--model', 'also ask the model endpoint which models it has, which costs nothing')
  cli
    .common(command, connectionSettings, ['threadmill doctor', 'threadmill doctor --model --json'])
    .action((options: DoctorOptions) => doctor(cli, options))
}

async function doctor(cli: Cli, options: DoctorOptions): Promise<void> {
  const { runDoctor } = await import('../doctor/run-doctor.ts')
  await runDoctor(cli, options)
}
