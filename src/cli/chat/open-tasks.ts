import type { PendingTaskOfChat } from '../../chat/pending.ts'
import type { View } from './view.ts'

/** The tasks that the chat waits for. */
export class OpenTasks {
  readonly #view: View
  #told = new Set<string>()

  constructor(view: View) {
    this.#view = view
  }

  /** Tells of each as the rows say it stands, unless that was done. */
  tell(tasks: readonly PendingTaskOfChat[]): void {
    const told = new Set<string>()
    for (const task of tasks) {
      const standing = JSON.stringify([task.toolCall.toolCallId, task.id, task.message])
      if (!this.#told.has(standing)) this.#view.waitsFor(task)
      told.add(standing)
    }
    this.#told = told
  }
}
