import type { AttachmentValue, ToolCallRow } from '../../models/rows.ts'
import type { AttachmentSource, LoadedAttachment } from '../attachments/source.ts'
import { ToolCallEndedError } from '../errors.ts'
import type { CallFiles } from '../tools/execute.ts'
import type { FilesPort } from './ports.ts'

/**
 * What one execution of a call attaches. The bytes are stored at once and held by nobody until the result is stored; a process that
 * dies in between leaves them to `mill.purgeAttachments()`. (E80, E81)
 */
export class AttachedFiles implements CallFiles {
  readonly #port: FilesPort
  readonly #call: Pick<ToolCallRow, 'name' | 'chatId'>
  /** One list for each call of `attach`, in their order, whichever is stored first. */
  #lists: LoadedAttachment[][] = []
  readonly #underWay = new Set<Promise<void>>()
  #closed = false

  constructor(port: FilesPort, call: Pick<ToolCallRow, 'name' | 'chatId'>) {
    this.#port = port
    this.#call = call
  }

  attach(sources: AttachmentSource | readonly AttachmentSource[]): Promise<void> {
    const storing = this.#store(sources)
    this.#underWay.add(storing)
    // Whoever awaits it is told of what it throws, and so is `stored`: a tool that forgot to must not end the process.
    const done = () => this.#underWay.delete(storing)
    storing.then(done, done)
    return storing
  }

  async stored(): Promise<void> {
    await Promise.all(this.#underWay)
  }

  /** Ends the execution: what comes later is refused, and what is under way is deleted again. */
  close(): void {
    this.#closed = true
  }

  /** What was stored, as a message has it; null = nothing. */
  get values(): AttachmentValue[] | null {
    const files = this.#lists.flat()
    return files.length === 0 ? null : files.map(({ value }) => value)
  }

  /** Makes sure that the bytes are still there; for the transaction that holds them. (E61) */
  keep(): Promise<void> {
    return this.#port.keep(this.#lists.flat())
  }

  /** Gives up what was stored: no result will hold it. */
  async drop(): Promise<void> {
    const files = this.#lists.flat()
    this.#lists = []
    await this.#port.purge(files)
  }

  async #store(sources: AttachmentSource | readonly AttachmentSource[]): Promise<void> {
    if (this.#closed) throw this.#ended()
    const list: LoadedAttachment[] = []
    this.#lists.push(list)
    const loaded = await this.#port.store(sources)
    if (!this.#closed) {
      list.push(...loaded)
      return
    }
    await this.#port.purge(loaded)
    throw this.#ended()
  }

  #ended(): ToolCallEndedError {
    const { name, chatId } = this.#call
    return new ToolCallEndedError(
      `Tool ${name} attached a file when its call was over: await attach() before the tool returns, and heed its signal.`,
      { chatId },
    )
  }
}
