import { HookStop, SkeinError } from "../core/errors.ts";
import { isRecord } from "../core/is-record.ts";
import type { Message, ToolResultMessage } from "../core/messages.ts";
import type { AskedHook, Hook, HookName, Hooks, NotifiedHook } from "./hook-events.ts";
import type { RuntimeContext } from "./runtime-context.ts";

/**
 * Registers hooks and calls them one after the other, in registration order. An error from a hook is reported and then
 * ignored, unless it is a {@link HookStop}.
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

  /** Registers a hook. Returns a function that removes it. */
  on<N extends HookName>(name: N, hook: Hook<N>): () => void {
    if (!Object.hasOwn(combinations, name) && !Object.hasOwn(notifiedHooks, name)) {
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

  /** Whether any hook is registered under this name. Check this before building an expensive event. */
  has(name: HookName): boolean {
    return (this.#hooks.get(name)?.length ?? 0) > 0;
  }

  /** Calls the hooks registered under a name and ignores their answers. */
  async notify<N extends NotifiedHook>(name: N, event: Hooks[N]["event"]): Promise<void> {
    for (const hook of this.#of(name)) await this.#orReport(name, () => hook(frozen(event)));
  }

  /** Calls the hooks registered under a name and combines their answers. */
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

  /** Returns a snapshot, so that hooks added or removed during a call take effect on the next call. */
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

/** Returns a frozen copy of an event. Each hook receives a separate copy, so no hook sees another's changes. */
function frozen<E extends object>(event: E): E {
  return Object.freeze({ ...event });
}

/** Wraps a registry so that hooks see contexts as `show` returns them. */
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

/** How the answers from several hooks with the same name are combined. */
interface Combination<N extends AskedHook> {
  /** The fields that an answer can have. */
  readonly fields: Readonly<Record<string, "text" | "object">>;
  /** Returns the outcome before any hook has answered. */
  begin(event: Hooks[N]["event"]): Hooks[N]["outcome"];
  /** Returns the outcome with another answer applied. */
  add(outcome: Hooks[N]["outcome"], answer: Given<Hooks[N]["answer"]>): Hooks[N]["outcome"];
  /** Returns the event for the next hook. */
  next(event: Hooks[N]["event"], outcome: Hooks[N]["outcome"]): Hooks[N]["event"];
  /** Whether the remaining hooks are skipped. */
  ends(outcome: Hooks[N]["outcome"]): boolean;
}

type FieldsOf<Answer> = Answer extends unknown ? keyof Answer : never;
type FieldOf<Answer, Field> = Answer extends unknown
  ? Field extends keyof Answer
    ? Answer[Field]
    : never
  : never;
/** A checked answer, with only the fields that were given. */
export type Given<Answer> = { readonly [Field in FieldsOf<Answer>]?: FieldOf<Answer, Field> };

const unchanged = <E>(event: E): E => event;
const never = () => false;

/** Passes each hook the message that the previous hook returned. The first rejection wins. */
function replacement<M>() {
  type Outcome = { readonly message: M; readonly refuse: string | null };
  type Answer = { readonly replace?: M; readonly refuse?: string };
  return {
    fields: { replace: "object", refuse: "text" } as const,
    begin: ({ message }: { readonly message: M }): Outcome => ({ message, refuse: null }),
    add: ({ message }: Outcome, { replace = message, refuse }: Answer): Outcome => {
      return { message: replace, refuse: refuse ?? null };
    },
    next: <E extends { readonly message: M }>(event: E, { message }: Outcome): E => ({ ...event, message }),
    ends: ({ refuse }: Outcome) => refuse !== null,
  };
}

/** Joins the contexts from several hooks with a blank line. */
function joined(before: string | null, more: string | undefined): string | null {
  if (more === undefined || more.trim() === "") return before;
  return before === null ? more : `${before}\n\n${more}`;
}

/** One row per hook that can return an answer. */
export const combinations: { readonly [N in AskedHook]: Combination<N> } = {
  before_agent_start: {
    fields: { prependContext: "text" },
    begin: () => ({ prependContext: null }),
    add: (outcome, answer) => ({ prependContext: joined(outcome.prependContext, answer.prependContext) }),
    next: unchanged,
    ends: never,
  },
  before_prompt_build: {
    fields: { system: "text", prependContext: "text" },
    begin: ({ system }) => ({ system, prependContext: null }),
    add: (outcome, { system = outcome.system, prependContext }) => ({
      system,
      prependContext: joined(outcome.prependContext, prependContext),
    }),
    next: (event, { system }) => ({ ...event, system }),
    ends: never,
  },
  before_tool_call: {
    fields: { block: "text", replace: "object" },
    begin: ({ arguments: given }) => ({ arguments: given, block: null }),
    add: (outcome, { replace = outcome.arguments, block = null }) => ({ arguments: replace, block }),
    next: (event, outcome) => ({ ...event, arguments: outcome.arguments }),
    ends: ({ block }) => block !== null,
  },
  tool_result_persist: replacement<ToolResultMessage>(),
  before_message_write: replacement<Message>(),
  before_compaction: {
    fields: { cancel: "text", summary: "text" },
    begin: ({ summary }) => ({ cancel: null, summary }),
    add: (outcome, { summary = outcome.summary, cancel = null }) => ({ cancel, summary }),
    next: (event, { summary }) => ({ ...event, summary }),
    ends: ({ cancel }) => cancel !== null,
  },
  before_reset: {
    fields: { cancel: "text" },
    begin: () => ({ cancel: null }),
    add: (_, { cancel = null }) => ({ cancel }),
    next: unchanged,
    ends: ({ cancel }) => cancel !== null,
  },
  subagent_spawning: {
    fields: { block: "text" },
    begin: () => ({ block: null }),
    add: (_, { block = null }) => ({ block }),
    next: unchanged,
    ends: ({ block }) => block !== null,
  },
};

/** One row per hook that is only notified. */
export const notifiedHooks: { readonly [N in NotifiedHook]: true } = {
  llm_input: true,
  llm_output: true,
  agent_end: true,
  after_tool_call: true,
  after_compaction: true,
  session_start: true,
  session_end: true,
  subagent_spawned: true,
  subagent_ended: true,
};

export const hookNames = [...Object.keys(combinations), ...Object.keys(notifiedHooks)] as readonly HookName[];

/** Returns the checked answer, or `null` if there is none. Throws if the answer is not allowed. */
function checkedAnswer<Answer>(
  answer: unknown,
  fields: Combination<AskedHook>["fields"],
): Given<Answer> | null {
  if (answer === undefined || answer === null) return null;
  const expected = `it can return ${Object.keys(fields).join(" or ")}`;
  if (!isRecord(answer)) throw new TypeError(`The hook returned ${typeof answer}; ${expected}`);
  const given = Object.entries(answer).filter(([, value]) => value !== undefined);
  for (const [field, value] of given) {
    const kind = Object.hasOwn(fields, field) ? fields[field] : undefined;
    if (kind === undefined) throw new TypeError(`The hook returned the field "${field}"; ${expected}`);
    const fits = kind === "text" ? typeof value === "string" : isRecord(value);
    if (!fits)
      throw new TypeError(`The hook's "${field}" is not ${kind === "text" ? "a string" : "an object"}`);
  }
  return given.length === 0 ? null : (Object.fromEntries(given) as Given<Answer>);
}
