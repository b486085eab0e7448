import type { Message, ToolResultMessage } from "../core/messages.ts";

/** What a hook is given and may give back, by its name. Others are added with what calls them. */
export interface Hooks {
  /** Before a tool's result is written: may replace or refuse it. */
  tool_result_persist: { event: { message: ToolResultMessage }; answer: MessageAnswer<ToolResultMessage> };
  /** Before any message is written: may replace or refuse it. */
  before_message_write: { event: { message: Message }; answer: MessageAnswer<Message> };
}

/** `replace` goes on to the next hook; `refuse` ends it, with a reason for people. Nothing: as it is. */
export type MessageAnswer<M> = { readonly replace: M } | { readonly refuse: string } | undefined;

export type HookName = keyof Hooks;
export type Hook<N extends HookName> = (
  event: Hooks[N]["event"],
) => Hooks[N]["answer"] | Promise<Hooks[N]["answer"]>;

/** An error that a hook wants to stop things with; any other error is reported and passed over. */
export class HookStop extends Error {
  override readonly name = "HookStop";
}

/** All hooks, called in the order they were registered. */
export class HookRegistry {
  readonly #hooks = new Map<HookName, ((event: never) => unknown)[]>();
  readonly #report: (name: HookName, error: unknown) => void;

  constructor(report: (name: HookName, error: unknown) => void = () => undefined) {
    this.#report = report;
  }

  /** Returns a function that takes it away again. */
  on<N extends HookName>(name: N, hook: Hook<N>): () => void {
    const hooks = this.#hooks.get(name) ?? [];
    this.#hooks.set(name, hooks);
    hooks.push(hook);
    return () => {
      const place = hooks.indexOf(hook);
      if (place !== -1) hooks.splice(place, 1);
    };
  }

  /** Hands a message through the hooks of a name, each given what the one before made of it. */
  async passThrough<N extends HookName>(
    name: N,
    message: Hooks[N]["event"]["message"],
  ): Promise<{ message: Hooks[N]["event"]["message"] } | { refused: string }> {
    let current = message;
    for (const hook of [...(this.#hooks.get(name) ?? [])]) {
      const answer = await this.#call(name, hook as Hook<N>, { message: current } as Hooks[N]["event"]);
      if (answer === undefined) continue;
      if ("refuse" in answer) return { refused: answer.refuse };
      current = answer.replace;
    }
    return { message: current };
  }

  async #call<N extends HookName>(
    name: N,
    hook: Hook<N>,
    event: Hooks[N]["event"],
  ): Promise<Hooks[N]["answer"]> {
    try {
      return await hook(event);
    } catch (error) {
      if (error instanceof HookStop) throw error;
      this.#report(name, error);
      return undefined;
    }
  }
}
