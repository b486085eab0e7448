import { text as readText } from "node:stream/consumers";
import type { Command } from "commander";
import { SkeinError } from "../core/errors.ts";
import { isRecord } from "../core/is-record.ts";
import { present } from "../core/present.ts";
import { thrownText } from "../core/text.ts";
import type { ToolResult } from "../tools/session-tool.ts";
import type { CommandContext } from "./command.ts";
import { action, examples } from "./command.ts";
import { errorCodeOf, resolveOrNew } from "./connection/resolve-session.ts";
import {
  abortAll,
  announceApprovals,
  leftForText,
  waitUntilClaimedSettled,
} from "./connection/wait-for-runs.ts";
import type { OpenSkeinCalls } from "./connection/with-skein-calls.ts";
import { withSkeinCalls } from "./connection/with-skein-calls.ts";
import { printNotice } from "./output/answer.ts";
import type { ExitCode } from "./output/errors.ts";
import { CommandFailed } from "./output/errors.ts";
import type { Invocation } from "./output/invocation.ts";
import { commandLine } from "./output/invocation.ts";
import { printToolResult } from "./output/tool-result.ts";

export const forSessionHelp =
  "the session to act for: its key, session ID, label or ID prefix (default: main)";

export function registerTool(command: Command, context: CommandContext): void {
  command
    .argument("<name>", "the tool: sessions_list, sessions_history, sessions_send, …")
    .argument("[json]", "the tool's arguments as a JSON object; - reads them from standard input")
    .option("--session <ref>", forSessionHelp)
    .option(
      "--key <idempotencyKey>",
      "an idempotency key: calling again with the same key returns the first result",
    )
    .option("--no-wait", "exit without waiting; skein start runs what the tool starts")
    .addHelpText(
      "after",
      examples(
        "skein tool sessions_list",
        `skein tool sessions_history '{"sessionKey": "main", "limit": 5}' --json`,
        `skein tool sessions_list '{"kinds": ["other"]}' --session trip`,
      ),
    )
    .action(action(context, toolCommand));
}

interface ToolCommandOptions {
  readonly session?: string;
  readonly key?: string;
  /** `false` if `--no-wait` is set. */
  readonly wait?: boolean;
}

/** Tools that start runs. For all other tools, this process executes no queued runs. */
const startingTools = new Set(["sessions_send", "sessions_spawn", "subagents"]);

/** The access action for tools that name a session, used in the hint about `skein access`. */
const actions: ReadonlyMap<string, string> = new Map([
  ["sessions_history", "history"],
  ["sessions_send", "send"],
  ["session_status", "status"],
]);

async function toolCommand(
  cli: Invocation<ToolCommandOptions>,
  name: string,
  json: string | undefined,
): Promise<void> {
  const { session, key, wait } = cli.options;
  const text = json === "-" ? await readText(cli.terminal.input().stream) : json;
  const args = text === undefined ? {} : readJson(text);
  const waits = wait !== false;
  const starts = startingTools.has(name);
  const ref = session ?? (starts ? "main" : undefined);
  const show = (result: ToolResult) => {
    const exit = printToolResult(cli, result);
    const target = isRecord(args) ? args.sessionKey : undefined;
    const access = result.status === "forbidden" ? actions.get(name) : undefined;
    if (access !== undefined && typeof target === "string") {
      const why = commandLine(cli, "access", ref ?? "main", target, "--action", access);
      printNotice(cli, `see ${why} for the rule that decided this`);
    }
    return exit;
  };
  const workers = waits && starts && "own";
  await withSkeinCalls(
    cli,
    (open) => callTool(open, { name, args, ref, key }, { waits, show }),
    ref === undefined ? { workers } : { workers, ref },
  );
}

interface ToolCall {
  readonly name: string;
  readonly args: unknown;
  /** The session on whose behalf the tool is called. Defaults to the agent's main session, if it exists. */
  readonly ref?: string | undefined;
  readonly key?: string | undefined;
}

/** While the call is waiting, prints the output of the runs that the tool has started. */
export interface Watched {
  /** Prints any output that must come before the result. */
  beforeResult(result: ToolResult): Promise<void>;
  whenSettled(): Promise<void>;
  close(): void;
}

/**
 * Calls a tool for a session and shows the result. Unless `waits` is `false`, waits until everything that the tool
 * started has ended. Ctrl-C aborts the call and everything it started. A second Ctrl-C quits.
 */
export async function callTool(
  open: OpenSkeinCalls,
  call: ToolCall,
  how: {
    readonly waits: boolean;
    show(result: ToolResult): ExitCode;
    /** Subscribes before the call so that no event is missed. */
    watch?(): Promise<Watched | null>;
  },
): Promise<void> {
  const leaving = new AbortController();
  let startedRoot: string | null = null;
  const stopListening = open.terminal.onInterrupt(() => {
    stopListening();
    printNotice(open, "aborting; press Ctrl-C again to quit");
    if (startedRoot === null) return leaving.abort(new CommandFailed());
    void abortAll(open, startedRoot).catch((error: unknown) => printNotice(open, String(error)));
  });
  const approvals = how.waits ? await announceApprovals(open) : null;
  let watched: Watched | null = null;
  try {
    watched = (await how.watch?.()) ?? null;
    const { result, rootId = null } = await invoke(open, call, leaving.signal);
    startedRoot = rootId;
    await watched?.beforeResult(result as ToolResult);
    const exit = how.show(result as ToolResult);
    const isAborted = leaving.signal.aborted;
    if (isAborted && rootId !== null) await abortAll(open, rootId);
    const left =
      how.waits && rootId !== null ? await waitUntilClaimedSettled(open, rootId).catch(ignoreForbidden) : [];
    if (how.waits) await watched?.whenSettled();
    if (left === null)
      printNotice(open, "the gateway continues the work, but this token is not allowed to read runs");
    else if (left.length > 0) printNotice(open, leftForText(left));
    if (isAborted || exit !== 0) throw new CommandFailed(isAborted ? 1 : exit);
  } finally {
    stopListening();
    watched?.close();
    approvals?.close();
  }
}

async function invoke(open: OpenSkeinCalls, { name, args, ref, key }: ToolCall, signal: AbortSignal) {
  const { asker, user } = open;
  const { key: sessionKey, ...whose } =
    ref === undefined ? { key: undefined, agentId: asker.agentId, ...user } : await resolveOrNew(open, ref);
  const params = {
    ...whose,
    ...present({ sessionKey, idempotencyKey: key }),
    name,
    // The method rejects a value that is not an object.
    arguments: args as Record<string, unknown>,
  };
  return open.calls.call("tools.invoke", params, { signal });
}

/** A token can have permission to call tools without permission to read runs. */
function ignoreForbidden(error: unknown): null {
  if (errorCodeOf(error) === "forbidden") return null;
  throw error;
}

/** Parses JSON. A parse error includes the line and column. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    const at = placeOfMistake(text);
    const before = text.slice(0, at).split("\n");
    const where = `line ${before.length}, column ${(before.at(-1) ?? "").length + 1}`;
    const char = text.at(at);
    const found =
      at >= text.length || char === undefined ? "unexpected end of input" : `unexpected "${char}"`;
    throw new SkeinError("invalid_arguments", {
      problem: `The arguments are not valid JSON: ${where}: ${found}`,
      advice: `Pass a JSON object in single quotes: '{"limit": 5}'`,
    });
  }
}

/** Returns the position of the first character that makes the text invalid, regardless of what follows. */
function placeOfMistake(text: string): number {
  let [fine, wrong] = [0, text.length + 1];
  while (wrong - fine > 1) {
    const middle = Math.floor((fine + wrong) / 2);
    if (isBeginning(text.slice(0, middle))) fine = middle;
    else wrong = middle;
  }
  return fine;
}

/** Whether the text is a prefix of valid JSON. */
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
