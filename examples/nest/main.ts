import 'reflect-metadata'
import { NestFactory } from '@nestjs/core'
import { ChatModule } from './worker.ts'

const app = await NestFactory.createApplicationContext(ChatModule)
// Without useProcessExit Nest ends the process by the signal itself, which an orchestrator reads as a failure.
app.enableShutdownHooks(['SIGTERM', 'SIGINT'], { useProcessExit: true })
process.stdout.write('ready\n')
