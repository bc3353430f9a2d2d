import { Module, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common'
import { Threadmill } from 'threadmill'
import { greeter } from './agents.ts'

/** Runs chats as long as the application does. */
export class ChatWorker implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #mill: Threadmill

  constructor(mill: Threadmill) {
    this.#mill = mill
  }

  async onApplicationBootstrap(): Promise<void> {
    await this.#mill.startWorkers().ready()
  }

  /** Lets running moves end, gives the chats to other workers, and closes the connections. */
  async onApplicationShutdown(): Promise<void> {
    await this.#mill.close()
  }
}

// Factories instead of injected constructors, which need compiler options that ask for more than standard decorators.
@Module({
  providers: [
    // DATABASE_URL, REDIS_URL and OPENAI_API_KEY come from the environment. Any provider can inject Threadmill.
    { provide: Threadmill, useFactory: () => Threadmill.connect({ agents: [greeter] }) },
    { provide: ChatWorker, useFactory: (mill: Threadmill) => new ChatWorker(mill), inject: [Threadmill] },
  ],
  exports: [Threadmill],
})
export class ChatModule {}
