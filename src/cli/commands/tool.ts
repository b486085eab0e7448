import { text as readText } from "node:stream/consumers";
import { callToolFor } from "../connection/call-tool.ts";
import { readJson } from "../connection/read-json.ts";
import { tell } from "../connection/with-folder.ts";
import type { SkeinUse } from "../connection/with-skein-calls.ts";
import { withSkeinCalls } from "../connection/with-skein-calls.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { isRow, printToolResult } from "../output/tool-result.ts";

export interface ToolCommandOptions extends GlobalOptions {
  readonly session?: string;
  readonly key?: string;
  /** `false`: `--no-wait`. */
  readonly wait?: boolean;
}

/** Tools that set work off. The others only look, and then nothing that waits in the folder is run in passing. */
const settingOff = new Set(["sessions_send", "sessions_spawn", "subagents"]);

/** What a tool that names a session wants of it; `access` says why it may not. */
const actions: ReadonlyMap<string, string> = new Map([
  ["sessions_history", "history"],
  ["sessions_send", "send"],
  ["session_status", "status"],
]);

/** Calls a tool for a session, prints its result, and stays until everything that it set off has ended. */
export async function toolCommand(
  terminal: Terminal,
  name: string,
  json: string | undefined,
  options: ToolCommandOptions,
): Promise<void> {
  const args = json === undefined ? {} : readJson(await textOf(terminal, json));
  const { session, key, wait } = options;
  const waits = wait !== false;
  const workers: SkeinUse["workers"] = waits && settingOff.has(name) && "own";
  const ref = session ?? (settingOff.has(name) ? "main" : undefined);
  const use = ref === undefined ? { workers } : { workers, ref };
  await withSkeinCalls(terminal, options, use, (open) =>
    callToolFor(
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
            const why = open.toType("access", ref ?? "main", target, "--action", action);
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
