import type { Command } from "commander";
import type { Terminal } from "../output/terminal.ts";
import { examples, upTo, yesOption } from "./options.ts";

export function registerUsers(program: Command, terminal: Terminal): void {
  const users = program
    .command("users")
    .description("Look after users.")
    .addHelpText("after", examples("skein users ls", "skein users rm alice --yes"));
  users
    .command("ls")
    .description("List users by ID, with what they have and when they were last active.")
    .option("--limit <number>", "users at the most, up to 500 (default: 100)", upTo(500))
    .option("--cursor <cursor>", "go on behind an earlier list")
    .addHelpText("after", examples("skein users ls", "skein users ls --limit 10 --json"))
    .action(async (_, command: Command) => {
      const { listUsersCommand } = await import("../commands/users.ts");
      await listUsersCommand(terminal, command.optsWithGlobals());
    });
  users
    .command("rm")
    .description("Delete everything of a user for good: sessions, trash, state, blobs.")
    .argument("<id>", "the user")
    .addOption(yesOption())
    .addHelpText("after", examples("skein users rm alice --yes"))
    .action(async (userId: string, _, command: Command) => {
      const { removeUserCommand } = await import("../commands/users.ts");
      await removeUserCommand(terminal, userId, command.optsWithGlobals());
    });
}
