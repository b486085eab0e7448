import type { Command } from "commander";
import { SkeinError } from "../core/errors.ts";
import { findRunning } from "../gateway/running-file.ts";
import type { CommandContext } from "./command.ts";
import { action, examples } from "./command.ts";
import { withGateway } from "./connection/with-calls.ts";
import { printAnswer } from "./output/answer.ts";
import { formatTime } from "./output/format.ts";
import type { Invocation } from "./output/invocation.ts";
import { commandLine } from "./output/invocation.ts";

export function registerLink(command: Command, context: CommandContext): void {
  command
    .addHelpText("after", examples("skein link", "skein link --dir ./project/.skein --json"))
    .action(action(context, createLink));
}

async function createLink(cli: Invocation): Promise<void> {
  await withGateway(
    cli,
    async (calls, { config }) => {
      const { url: path, expiresAt } = await calls.call("links.create", {});
      const address = findRunning(config.store.path)?.url ?? "";
      const url = new URL(path, `${address}/`).href;
      printAnswer(cli, { url, expiresAt }, [url, ["valid", `one use, until ${formatTime(expiresAt)} UTC`]]);
    },
    async ({ place }) => {
      throw new SkeinError("unavailable", {
        problem: `No gateway is running for ${place}`,
        advice: `Start one with \`${commandLine(cli, "start")}\`, which prints a link`,
      });
    },
  );
}
