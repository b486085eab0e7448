import type { Command } from "commander";
import { Option } from "commander";
import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import { keyOfReference } from "../core/references.ts";
import { thinkingLevels } from "../core/thinking-levels.ts";
import { parseModel } from "../transcript/model-table.ts";
import { Chat } from "./chat-loop.ts";
import type { CommandContext } from "./command.ts";
import { action, examples, newSessionHelp } from "./command.ts";
import { readMentionedImages } from "./connection/read-images.ts";
import { resolveOrNew } from "./connection/resolve-session.ts";
import type { OpenSkeinCalls } from "./connection/with-skein-calls.ts";
import { withSkeinCalls } from "./connection/with-skein-calls.ts";
import { CommandFailed } from "./output/errors.ts";
import type { Invocation } from "./output/invocation.ts";
import { paint } from "./output/terminal.ts";
import type { Sending } from "./slash-commands.ts";
import { ChatSession } from "./slash-commands.ts";

export function registerChat(command: Command, context: CommandContext): void {
  command
    .argument("[ref]", newSessionHelp, "main")
    .option("--model <provider/model>", "use this model")
    .addOption(
      new Option("--thinking [level]", "show the model's thinking, and optionally set its level").choices(
        thinkingLevels,
      ),
    )
    .addHelpText(
      "after",
      examples("skein chat", "skein chat trip --thinking", "skein chat agent:main:session:porto"),
    )
    .action(action(context, chatCommand));
}

interface ChatOptions {
  readonly model?: string;
  /** `true` shows thinking at the configured level. */
  readonly thinking?: NonNullable<Sending["thinking"]> | true;
}

async function chatCommand(cli: Invocation<ChatOptions>, ref: string): Promise<void> {
  const { terminal, options } = cli;
  const { model, thinking } = options;
  if (options.json === true) {
    const advice = "Use `send --json`, which sends one message and prints its reply";
    throw new SkeinError("invalid_arguments", { problem: "chat has no JSON output", advice });
  }
  if (model !== undefined) parseModel(model);
  const { typed } = terminal.input();
  const chatWith = async (open: OpenSkeinCalls) => {
    const to = await resolveOrNew(open, ref);
    const sending = present({ model, thinking: thinking === true ? undefined : thinking });
    const session = new ChatSession(open, to, sending, readMentionedImages);
    // Events contain session keys, so the key is needed.
    const key = (await session.details())?.key ?? keyOfReference(ref, open.asker);
    session.moveTo({ key: key ?? to.key });
    if (typed) {
      terminal.out(
        `${paint(terminal, "dim", `${session.shown}: type /help for a list of commands, or press Ctrl-D to quit`)}\n`,
      );
    }
    const chat = new Chat(terminal, session, { thinking: thinking !== undefined });
    await chat.run();
    if (chat.hasFailed && !typed) throw new CommandFailed();
  };
  await withSkeinCalls(cli, chatWith, { workers: true, ref });
}
