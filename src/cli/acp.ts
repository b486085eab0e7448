import type { Command } from "commander";
import type { EditorCommand, ServerContext } from "../acp/server/context.ts";
import { serveAcpStdio } from "../acp/server/serve-stdio.ts";
import { SkeinError } from "../core/errors.ts";
import { thrownText } from "../core/text.ts";
import type { MethodName } from "../protocol/method-table.ts";
import type { CommandContext } from "./command.ts";
import { action, examples } from "./command.ts";
import type { OpenSkeinCalls } from "./connection/with-skein-calls.ts";
import { withSkeinCalls } from "./connection/with-skein-calls.ts";
import { withProtocolStreams } from "./gateway/stdio-protocol.ts";
import { printNotice } from "./output/answer.ts";
import type { SlashName } from "./slash-commands.ts";
import { ChatSession, slashCommandTable, slashHandlers } from "./slash-commands.ts";

/**
 * Serves ACP over the standard streams until the input ends, either through the folder's gateway or on the folder
 * directly. On a stop request, waits until runs reach a durable state. A second request exits immediately.
 */
export function registerAcp(command: Command, context: CommandContext): void {
  command.addHelpText("after", examples("skein acp", "skein acp --agent main --user ann")).action(
    action(context, ({ terminal, options }) =>
      withProtocolStreams(terminal, (streams) =>
        withSkeinCalls(
          { terminal: streams.terminal, options },
          (open) => serveAcpStdio(acpContext(open, context.version), streams),
          // With a session reference, the command creates a missing folder.
          { workers: true, ref: "main" },
        ),
      ),
    ),
  );
}

/**
 * The polling interval. Polling is needed because, without a gateway, no event reports what other processes do in the
 * folder.
 */
const pollMs = 250;

const needed = ["sessions.get", "chat.send"] as const;

function acpContext(open: OpenSkeinCalls, version: string): ServerContext {
  const { calls, reader, may } = open;
  if (!needed.every(may)) {
    const problem = "An editor needs read and write access, but the token does not grant both";
    throw new SkeinError("forbidden", { problem, advice: "Use a token with the scopes read and write" });
  }
  return {
    version,
    calls,
    scope: reader,
    canCall: may,
    commands: editorCommands(open),
    cwd: open.terminal.cwd,
    ...(open.store === null ? {} : { pollMs }),
    report: (error) => printNotice(open, thrownText(error)),
  };
}

/**
 * The slash commands offered to an editor, with the method that each one needs. Commands that editors have built in,
 * such as quitting and forking, are omitted.
 */
const offered: Readonly<Partial<Record<SlashName, MethodName>>> = {
  status: "runs.list",
  compact: "sessions.compact",
  new: "sessions.reset",
  model: "sessions.patch",
  branch: "sessions.branch",
  tree: "sessions.tree",
};

function editorCommands(open: OpenSkeinCalls): EditorCommand[] {
  return Object.entries(offered).flatMap(([each, method]) => {
    const name = each as SlashName;
    const { usage, about } = slashCommandTable[name];
    const [, hint = null] = /\[(.*)\]/.exec(usage) ?? [];
    const run: EditorCommand["run"] = (key, rest, signal) =>
      runSlashCommand(open, name, { key, rest, signal });
    return open.may(method) ? [{ name, about, hint, run }] : [];
  });
}

/** Runs a slash command and returns its output. */
async function runSlashCommand(
  open: OpenSkeinCalls,
  name: SlashName,
  { key, rest, signal }: { readonly key: string; readonly rest: string; readonly signal: AbortSignal },
): Promise<string> {
  let text = "";
  const out = (piece: string) => {
    text += piece;
  };
  const session = new ChatSession(open, { key, ...open.user }, {});
  const terminal = { ...open.terminal, out, err: out, color: { out: false, err: false } };
  const note = (line: string) => out(`${line}\n`);
  await slashHandlers[name]({ session, terminal, note, leave: () => undefined, signal }, rest);
  // A code block keeps the columns aligned.
  return name === "status" || name === "tree" ? `\`\`\`\n${text.trimEnd()}\n\`\`\`\n` : text;
}
