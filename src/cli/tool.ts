import { text as readText } from "node:stream/consumers";
import type { Command } from "commander";
import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import { thrownText } from "../core/text.ts";
import type { ToolResult } from "../tools/contract.ts";
import type { CommandContext } from "./command.ts";
import { examples } from "./command.ts";
import { errorCodeOf, resolveOrNew } from "./connection/resolve-session.ts";
import {
  abortAll,
  announceApprovals,
  leftForText,
  waitUntilClaimedSettled,
} from "./connection/wait-for-runs.ts";
import { tell } from "./connection/with-folder.ts";
import type { OpenSkeinCalls, SkeinUsage } from "./connection/with-skein-calls.ts";
import { withSkeinCalls } from "./connection/with-skein-calls.ts";
import type { ExitCode } from "./output/errors.ts";
import { CommandFailed } from "./output/errors.ts";
import type { GlobalOptions } from "./output/global-options.ts";
import type { Terminal } from "./output/terminal.ts";
import { isRow, printToolResult } from "./output/tool-result.ts";

export const forSessionHelp =
  "the session to act for: key, session id, label, or a beginning of the id (default: main)";

export function registerTool(command: Command, { terminal }: CommandContext): void {
  command
    .argument("<name>", "the tool: sessions_list, sessions_history, sessions_send, …")
    .argument("[json]", "its arguments as one JSON object; - reads them from standard input")
    .option("--session <ref>", forSessionHelp)
    .option("--key <idempotencyKey>", "calling again with the same key returns the first result")
    .option("--no-wait", "exit at once; skein start runs what the tool starts")
    .addHelpText(
      "after",
      examples(
        "skein tool sessions_list",
        `skein tool sessions_history '{"sessionKey": "main", "limit": 5}' --json`,
        `skein tool sessions_list '{"kinds": ["other"]}' --session trip`,
      ),
    )
    .action((name: string, json?: string) => toolCommand(terminal, name, json, command.optsWithGlobals()));
}

interface ToolCommandOptions extends GlobalOptions {
  readonly session?: string;
  readonly key?: string;
  /** `false`: `--no-wait`. */
  readonly wait?: boolean;
}

/** Tools that set work off. The others only look, and then nothing that waits in the folder is run in passing. */
const startingTools = new Set(["sessions_send", "sessions_spawn", "subagents"]);

/** What a tool that names a session wants of it; `access` says why it may not. */
const actions: ReadonlyMap<string, string> = new Map([
  ["sessions_history", "history"],
  ["sessions_send", "send"],
  ["session_status", "status"],
]);

/** Calls a tool for a session, prints its result, and stays until everything that it set off has ended. */
async function toolCommand(
  terminal: Terminal,
  name: string,
  json: string | undefined,
  options: ToolCommandOptions,
): Promise<void> {
  const args = json === undefined ? {} : readJson(await textOf(terminal, json));
  const { session, key, wait } = options;
  const waits = wait !== false;
  const workers: SkeinUsage["workers"] = waits && startingTools.has(name) && "own";
  const ref = session ?? (startingTools.has(name) ? "main" : undefined);
  const use = ref === undefined ? { workers } : { workers, ref };
  await withSkeinCalls(terminal, options, use, (open) =>
    callTool(
      terminal,
      open,
      { name, args, ref, key },
      {
        ...options,
        waits,
        show: (result) => {
          const exit = printToolResult(terminal, options, result);
          const target = isRow(args) ? args.sessionKey : undefined;
          const action = result.status === "forbidden" ? actions.get(name) : undefined;
          if (action !== undefined && typeof target === "string") {
            const why = open.nextCommand("access", ref ?? "main", target, "--action", action);
            tell(terminal, options, `see ${why} for the rule that decided`);
          }
          return exit;
        },
      },
    ),
  );
}

async function textOf(terminal: Terminal, json: string): Promise<string> {
  return json === "-" ? readText(terminal.input().stream) : json;
}

interface ToolCall {
  readonly name: string;
  readonly args: unknown;
  /** The session that it is called for; left out: the agent's main one, if it is there. */
  readonly ref?: string | undefined;
  readonly key?: string | undefined;
}

/** What is shown on stderr while a call waits. */
export interface Watched {
  /** The result is there: what comes before it is printed first. */
  beforeResult(result: ToolResult): Promise<void>;
  /** All that was set off has ended. */
  whenSettled(): Promise<void>;
  close(): void;
}

/**
 * Calls a tool for a session, hands over the result, and stays until all that it set off has ended, and what had to run before
 * it, unless nobody is to wait. Ctrl-C ends the call, or aborts what it set off; a second one leaves.
 */
export async function callTool(
  terminal: Terminal,
  open: OpenSkeinCalls,
  call: ToolCall,
  how: GlobalOptions & {
    readonly waits: boolean;
    show(result: ToolResult): ExitCode;
    /** Shows meanwhile what is set off, from before there is anything. */
    watch?(): Promise<Watched | null>;
  },
): Promise<void> {
  const leaving = new AbortController();
  let setOff: string | null = null;
  const stopListening = terminal.onInterrupt(() => {
    stopListening();
    tell(terminal, how, "aborting; Ctrl-C again leaves");
    if (setOff === null) return leaving.abort(new CommandFailed());
    void abortAll(open, setOff).catch((error: unknown) => tell(terminal, how, String(error)));
  });
  const approvals = how.waits ? await announceApprovals(terminal, open, how) : null;
  let watched: Watched | null = null;
  try {
    watched = (await how.watch?.()) ?? null;
    const { result, rootId = null } = await invoke(open, call, leaving.signal);
    setOff = rootId;
    await watched?.beforeResult(result as ToolResult);
    const exit = how.show(result as ToolResult);
    const isLeft = leaving.signal.aborted;
    if (isLeft && rootId !== null) await abortAll(open, rootId);
    const left =
      how.waits && rootId !== null ? await waitUntilClaimedSettled(open, rootId).catch(ignoreForbidden) : [];
    if (how.waits) await watched?.whenSettled();
    if (left === null) tell(terminal, how, "the gateway goes on with it: this token may not look at runs");
    else if (left.length > 0) tell(terminal, how, leftForText(left));
    if (isLeft || exit !== 0) throw new CommandFailed(isLeft ? 1 : exit);
  } finally {
    stopListening();
    watched?.close();
    approvals?.close();
  }
}

async function invoke(open: OpenSkeinCalls, { name, args, ref, key }: ToolCall, signal: AbortSignal) {
  const { agentId } = open.asker;
  const { userId } = open.reader;
  const { key: sessionKey, ...whose } =
    ref === undefined ? { key: undefined, agentId, ...present({ userId }) } : await resolveOrNew(open, ref);
  const params = {
    ...whose,
    ...present({ sessionKey, idempotencyKey: key }),
    name,
    // What is no object is refused, in words about the field.
    arguments: args as Record<string, unknown>,
  };
  return open.calls.call("tools.invoke", params, { signal });
}

/** Who may call tools need not be one who may see runs. */
function ignoreForbidden(error: unknown): null {
  if (errorCodeOf(error) === "forbidden") return null;
  throw error;
}

/** JSON that a person typed. A mistake in it is told with its place. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    const at = placeOfMistake(text);
    const before = text.slice(0, at).split("\n");
    const where = `line ${before.length}, column ${(before.at(-1) ?? "").length + 1}`;
    const char = text.at(at);
    const found =
      at >= text.length || char === undefined ? "it ends too early" : `"${char}" does not belong there`;
    throw new SkeinError("invalid_arguments", {
      problem: `The arguments are no JSON: ${where}: ${found}`,
      advice: `Put one object in single quotes: '{"limit": 5}'`,
    });
  }
}

/** The first character that nothing behind it could make right. */
function placeOfMistake(text: string): number {
  let [fine, wrong] = [0, text.length + 1];
  while (wrong - fine > 1) {
    const middle = Math.floor((fine + wrong) / 2);
    if (isBeginning(text.slice(0, middle))) fine = middle;
    else wrong = middle;
  }
  return fine;
}

/** Whether only the end of it is missing. */
function isBeginning(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    const message = thrownText(error);
    const [, position] = /at position (\d+)/.exec(message) ?? [];
    if (position === undefined) return message.startsWith("Unexpected end");
    return Number(position) >= text.length || message.startsWith("Unterminated string");
  }
}
