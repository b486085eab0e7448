import type { Message, ToolResultMessage } from "../core/messages.ts";
import { isRecord } from "../core/shape.ts";
import type { AskedHook, Hooks, ToldHook } from "./hook-events.ts";

/** How the answers of several hooks of one name combine. */
export interface Combination<N extends AskedHook> {
  /** What an answer may hold; any other is a mistake of the hook. */
  readonly fields: Readonly<Record<string, "text" | "object">>;
  /** What comes out when nobody answers. */
  begin(event: Hooks[N]["event"]): Hooks[N]["outcome"];
  /** With one answer more. */
  add(outcome: Hooks[N]["outcome"], answer: Given<Hooks[N]["answer"]>): Hooks[N]["outcome"];
  /** What the next hook is given. */
  next(event: Hooks[N]["event"], outcome: Hooks[N]["outcome"]): Hooks[N]["event"];
  /** Nobody else is asked. */
  ends(outcome: Hooks[N]["outcome"]): boolean;
}

type FieldsOf<Answer> = Answer extends unknown ? keyof Answer : never;
type FieldOf<Answer, Field> = Answer extends unknown
  ? Field extends keyof Answer
    ? Answer[Field]
    : never
  : never;
/** An answer that has been checked: of the fields that it may have, those that it has. */
export type Given<Answer> = { readonly [Field in FieldsOf<Answer>]?: FieldOf<Answer, Field> };

const same = <E>(event: E): E => event;
const never = () => false;

/** Each is given what the one before made of the message; the first that refuses wins. */
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

/** Contexts of several hooks, in the order of the hooks, a blank line between them. */
function joined(before: string | null, more: string | undefined): string | null {
  if (more === undefined || more.trim() === "") return before;
  return before === null ? more : `${before}\n\n${more}`;
}

/** One row for each hook that is asked. */
export const combinations: { readonly [N in AskedHook]: Combination<N> } = {
  before_agent_start: {
    fields: { prependContext: "text" },
    begin: () => ({ prependContext: null }),
    add: (outcome, answer) => ({ prependContext: joined(outcome.prependContext, answer.prependContext) }),
    next: same,
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
    next: same,
    ends: ({ cancel }) => cancel !== null,
  },
  subagent_spawning: {
    fields: { block: "text" },
    begin: () => ({ block: null }),
    add: (_, { block = null }) => ({ block }),
    next: same,
    ends: ({ block }) => block !== null,
  },
};

/** Those that are only told. */
export const toldHooks: { readonly [N in ToldHook]: true } = {
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

/** The answer, or an error that says what is wrong with it; `null`: there is none. */
export function checkedAnswer<Answer>(
  answer: unknown,
  fields: Combination<AskedHook>["fields"],
): Given<Answer> | null {
  if (answer === undefined || answer === null) return null;
  const expected = `it may answer with ${Object.keys(fields).join(" or ")}`;
  if (!isRecord(answer)) throw new TypeError(`The hook answered with ${typeof answer}; ${expected}`);
  const given = Object.entries(answer).filter(([, value]) => value !== undefined);
  for (const [field, value] of given) {
    const kind = Object.hasOwn(fields, field) ? fields[field] : undefined;
    if (kind === undefined) throw new TypeError(`The hook answered with "${field}"; ${expected}`);
    const fits = kind === "text" ? typeof value === "string" : isRecord(value);
    if (!fits) throw new TypeError(`The hook's "${field}" is no ${kind}`);
  }
  return given.length === 0 ? null : (Object.fromEntries(given) as Given<Answer>);
}
