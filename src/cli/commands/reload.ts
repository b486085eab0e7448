import { withCalls } from "../connection/with-calls.ts";
import type { AnswerLine } from "../output/answer.ts";
import { answer } from "../output/answer.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";

/** Lets the running gateway apply its whole configuration, with commands that a changed file alone does not start. */
export async function reloadCommand(terminal: Terminal, options: GlobalOptions): Promise<void> {
  await withCalls(terminal, options, async ({ calls }) => {
    const done = await calls.call("config.reload", {});
    const lines: AnswerLine[] = [
      `The gateway reloaded ${done.file ?? "its configuration; there is no file, so the defaults apply"}.`,
      ...done.commands.map((setting): AnswerLine => ["new command", setting]),
      ...done.restartNeeded.map((setting): AnswerLine => ["needs a restart", setting]),
    ];
    answer(terminal, options, done, lines);
  });
}
