import { SkeinError } from "../core/errors.ts";
import type { Combination } from "./hook-answers.ts";
import { checkedAnswer, combinations, toldHooks } from "./hook-answers.ts";
import type { AskedHook, Hook, HookName, Hooks, ToldHook } from "./hook-events.ts";
import type { RuntimeContext } from "./runtime-context.ts";

/**
 * An error that a hook wants to stop things with; any other error is reported and passed over.
 *
 * @example
 * ```ts
 * import { HookRegistry, HookStop } from "skein";
 * new HookRegistry().on("llm_input", ({ ctx }) => {
 *   if (ctx.userId === null) throw new HookStop("No requests without a user.");
 * });
 * ```
 */
export class HookStop extends Error {
  override readonly name = "HookStop";
}

/**
 * All hooks, called one after the other in the order they were registered. One that fails is reported and passed over,
 * unless it throws a {@link HookStop}.
 *
 * @example
 * ```ts
 * import { HookRegistry } from "skein";
 * const hooks = new HookRegistry((name, error) => console.error(name, error));
 * const off = hooks.on("before_tool_call", ({ toolName }) =>
 *   toolName === "bash" ? { block: "No shell here." } : undefined,
 * );
 * off();
 * ```
 */
export class HookRegistry {
  readonly #hooks = new Map<HookName, ((event: never) => unknown)[]>();
  readonly #report: (name: HookName, error: unknown) => void;

  constructor(report: (name: HookName, error: unknown) => void = () => undefined) {
    this.#report = report;
  }

  /** Returns a function that takes it away again. */
  on<N extends HookName>(name: N, hook: Hook<N>): () => void {
    if (!Object.hasOwn(combinations, name) && !Object.hasOwn(toldHooks, name)) {
      throw new SkeinError("invalid_arguments", {
        problem: `There is no hook named "${name}"`,
        advice: `Use one of ${hookNames.join(", ")}`,
      });
    }
    const entry = (event: Hooks[N]["event"]) => hook(event);
    const hooks = this.#hooks.get(name) ?? [];
    this.#hooks.set(name, hooks);
    hooks.push(entry);
    return () => {
      const place = hooks.indexOf(entry);
      if (place !== -1) hooks.splice(place, 1);
    };
  }

  /** Whether anybody would be called. For what is dear to find out, and only for hooks. */
  has(name: HookName): boolean {
    return (this.#hooks.get(name)?.length ?? 0) > 0;
  }

  /** Tells the hooks of a name; what they answer does not count. */
  async notify<N extends ToldHook>(name: N, event: Hooks[N]["event"]): Promise<void> {
    for (const hook of this.#of(name)) await this.#orReport(name, () => hook(frozen(event)));
  }

  /** Asks the hooks of a name, and gives what their answers come to. */
  async ask<N extends AskedHook>(name: N, event: Hooks[N]["event"]): Promise<Hooks[N]["outcome"]> {
    const how: Combination<N> = combinations[name];
    let outcome = how.begin(event);
    for (const hook of this.#of(name)) {
      await this.#orReport(name, async () => {
        const answer = checkedAnswer<Hooks[N]["answer"]>(
          await hook(frozen(how.next(event, outcome))),
          how.fields,
        );
        if (answer !== null) outcome = how.add(outcome, answer);
      });
      if (how.ends(outcome)) break;
    }
    return outcome;
  }

  /** Those that are there now: one that comes or goes meanwhile counts from the next time on. */
  #of<N extends HookName>(name: N): ((event: Hooks[N]["event"]) => unknown)[] {
    return [...(this.#hooks.get(name) ?? [])] as ((event: Hooks[N]["event"]) => unknown)[];
  }

  async #orReport(name: HookName, call: () => unknown): Promise<void> {
    try {
      await call();
    } catch (error) {
      if (error instanceof HookStop) throw error;
      this.#report(name, error);
    }
  }
}

/** Every hook there is. */
export const hookNames = [...Object.keys(combinations), ...Object.keys(toldHooks)] as readonly HookName[];

/** An event of its own for each hook: what one does to it, no other sees. */
function frozen<E extends object>(event: E): E {
  return Object.freeze({ ...event });
}

/** The same registry, which shows hooks every context as `show` makes it. */
export function withShownContext(
  hooks: HookRegistry,
  show: (ctx: RuntimeContext) => RuntimeContext,
): HookRegistry {
  const shown = <E extends { readonly ctx: RuntimeContext }>(event: E): E => {
    const ctx = show(event.ctx);
    return ctx === event.ctx ? event : { ...event, ctx };
  };
  const calling: Pick<HookRegistry, "ask" | "notify"> = {
    ask: (name, event) => hooks.ask(name, shown(event)),
    notify: (name, event) => hooks.notify(name, shown(event)),
  };
  return new Proxy(hooks, {
    get: (target, name) => {
      if (name === "ask" || name === "notify") return calling[name];
      const own: unknown = Reflect.get(target, name, target);
      return typeof own === "function" ? own.bind(target) : own;
    },
  });
}
