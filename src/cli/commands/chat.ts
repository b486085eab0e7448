import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import { parseModel } from "../../transcript/parse-model.ts";
import { Chat } from "../chat/chat.ts";
import { ChatSession } from "../chat/chat-session.ts";
import { contextFor, withSkein } from "../folder/with-skein.ts";
import { CommandFailed } from "../output/failure.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { paint } from "../output/terminal.ts";

export interface ChatOptions extends GlobalOptions {
  readonly model?: string;
  /** `true`: shown, at the level that it has. */
  readonly thinking?: string | true;
}

/** A conversation at the terminal, or of lines that are piped in. */
export async function chatCommand(terminal: Terminal, ref: string, options: ChatOptions): Promise<void> {
  if (options.json === true) {
    const advice = "Use `send --json`, which answers once";
    throw new SkeinError("invalid_arguments", { problem: "A chat is no JSON document", advice });
  }
  const { model, thinking } = options;
  if (model !== undefined) parseModel(model);
  await withSkein(terminal, options, { workers: true, ref }, async (open) => {
    const context = await contextFor(open, ref);
    const level = typeof thinking === "string" ? thinking : undefined;
    const handle = open.skein.session(context);
    const newId = (await handle.record()) === null ? (context.sessionId ?? null) : null;
    const session = new ChatSession(
      open,
      { key: handle.key, newId },
      { ...present({ model, thinking: level }), origin: "cli" },
    );
    if (terminal.input().typed) {
      terminal.out(
        `${paint(terminal, "dim", `${session.shown}: /help shows what can be typed; Ctrl-D leaves`)}\n`,
      );
    }
    const chat = new Chat(terminal, session, { thinking: thinking !== undefined });
    await chat.run();
    if (chat.hasFailed && !terminal.input().typed) throw new CommandFailed();
  });
}
