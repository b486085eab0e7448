import type { EditorCommand } from "../../acp/server/contract.ts";
import type { MethodName } from "../../protocol/methods/method-table.ts";
import type { OpenSkeinCalls } from "../connection/with-skein-calls.ts";
import type { Terminal } from "../output/terminal.ts";
import { acts } from "./acts.ts";
import { ChatSession } from "./chat-session.ts";
import type { SlashName } from "./slash.ts";
import { slashCommands } from "./slash.ts";

/**
 * The slash commands of a chat that an editor offers, with what each must be able to call. An editor has a way of its own to
 * leave, and to fork: there a session is one of its windows, and cannot become another.
 */
const offered: Readonly<Partial<Record<SlashName, MethodName>>> = {
  status: "runs.list",
  compact: "sessions.compact",
  new: "sessions.reset",
  model: "sessions.patch",
  branch: "sessions.branch",
  tree: "sessions.tree",
};

export function editorCommands(terminal: Terminal, open: OpenSkeinCalls): EditorCommand[] {
  return Object.entries(offered).flatMap(([each, method]) => {
    const name = each as SlashName;
    const { usage, about } = slashCommands[name];
    const [, hint = null] = /\[(.*)\]/.exec(usage) ?? [];
    const run: EditorCommand["run"] = (key, rest, signal) =>
      done(terminal, open, name, { key, rest, signal });
    return open.may(method) ? [{ name, about, hint, run }] : [];
  });
}

/** What it prints and notes, as one text. */
async function done(
  terminal: Terminal,
  open: OpenSkeinCalls,
  name: SlashName,
  { key, rest, signal }: { readonly key: string; readonly rest: string; readonly signal: AbortSignal },
): Promise<string> {
  let text = "";
  const out = (piece: string) => {
    text += piece;
  };
  const { userId } = open.reader;
  const session = new ChatSession(open, { key, ...(userId === undefined ? {} : { userId }) }, {});
  const printing = { ...terminal, out, err: out, color: { out: false, err: false } };
  await acts[name](
    { session, terminal: printing, note: (line) => out(`${line}\n`), leave: () => undefined, signal },
    rest,
  );
  // Columns stay columns.
  return name === "status" || name === "tree" ? `\`\`\`\n${text.trimEnd()}\n\`\`\`\n` : text;
}
