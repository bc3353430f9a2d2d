import type { HookLists, HookName, Hooks } from '../tools/hooks.ts'

/** What a hook is called with, its chat left out. */
export type HookArguments<Name extends HookName> =
  Parameters<Hooks<never>[Name]> extends [...infer Given, never] ? Given : never

/** The hooks of one run: the agent's, then those of the chat object that runs. */
export class RunHooks {
  readonly #lists: readonly HookLists<never>[]
  readonly #chat: () => unknown
  #made: { readonly chat: unknown } | null = null

  /** @param chat makes the chat that hooks are given, where there is a hook to give it to. */
  constructor(lists: readonly HookLists<never>[], chat: () => unknown) {
    this.#lists = lists
    this.#chat = chat
  }

  has(name: HookName): boolean {
    return this.#lists.some((hooks) => (hooks[name]?.length ?? 0) > 0)
  }

  /** Calls every hook of that name, one after the other. What one throws comes out, and the next ones are not called. */
  async call<Name extends HookName>(name: Name, ...given: HookArguments<Name>): Promise<void> {
    for (const hooks of this.#lists) {
      for (const hook of hooks[name] ?? []) {
        this.#made ??= { chat: this.#chat() }
        await (hook as (...args: unknown[]) => unknown)(...given, this.#made.chat)
      }
    }
  }
}
