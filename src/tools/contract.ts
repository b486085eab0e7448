import type { Redactor } from "../access/redaction/redactor.ts";
import type { SleepRequest, TurnModel } from "../agents/contract.ts";
import type { Schema } from "../core/schema.ts";
import type { BetweenDeps, Caller } from "../sessions/between.ts";
import type { ListedSession } from "../store/contract.ts";

/** The result of a tool: one JSON object. A refusal is a result too, with `status`, `error` and `code`. */
export type ToolResult = Readonly<Record<string, unknown>>;

export interface ToolAnswer {
  readonly result: ToolResult;
  /** Ends the turn once every other call of its message is answered. */
  readonly sleep?: SleepRequest;
}

/** A tool of `group:sessions`, the same in-process, on the command line, over the gateway and over MCP. */
export interface SessionTool {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  /** A schema of an object; arguments are read by it (`arguments.ts`). */
  readonly parameters: Schema;
  /** The schema of its result; a refusal is one of the results. */
  readonly output?: Schema;
  /** Called after all other calls of its message: what those set off is there then. */
  readonly isLast?: boolean;
  /** Other names of arguments, folded before the arguments are read: alias → name. First come, first taken. */
  readonly aliases?: Readonly<Record<string, string>>;
  /** Of these aliases, those that are refused beside the name they stand for; the others are dropped there. */
  readonly exclusiveAliases?: readonly string[];
  /** Names that are refused with a text of their own: name → text. */
  readonly refusedNames?: Readonly<Record<string, string>>;
  /** The arguments of a call as its transcript keeps them; left out: as they are. */
  persisted?(args: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>;
  /** It looks, and sets nothing off. */
  readonly isReadOnly?: boolean;
  /** It may end work, or remove something. */
  readonly isDestructive?: boolean;
  /** Every text that it gives is redacted already; left out: the rim does it. */
  readonly isRedacted?: boolean;
  /** What a refusal has beside `status`, `code` and `error`, an unfit argument's too. */
  refused?(call: Caller): ToolResult;
  /** `args` are read: trimmed, clamped, nothing unknown in them. May throw a ToolInputError or a SkeinError: a refusal. */
  execute(args: Readonly<Record<string, unknown>>, call: Caller, deps: ToolDeps): Promise<ToolAnswer>;
}

export interface ToolDeps extends BetweenDeps {
  readonly redactor: Redactor;
  /** The tools that a session's agent would be offered now, by name. */
  offered(call: Caller): Promise<readonly string[]>;
  /** The working sets of sessions as paths, by uid; empty: the store has none. */
  transcriptPaths(sessions: readonly ListedSession[]): ReadonlyMap<string, string>;
  /** Whether models, too, are told those paths. */
  readonly showPaths: boolean;
  /** What is known of a model by its name; `null`: nothing. Left out: nothing is known of any. */
  describeModel?(name: string): Pick<TurnModel, "policy" | "info"> | null;
}
