import type { SleepRequest } from "../agents/contract.ts";
import type { Schema } from "../core/schema.ts";
import type { App } from "../sessions/app.ts";
import type { Caller } from "../sessions/session-access.ts";

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
  execute(args: Readonly<Record<string, unknown>>, call: Caller, app: App): Promise<ToolAnswer>;
}
