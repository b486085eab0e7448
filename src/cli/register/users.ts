import type { Command } from "commander";
import type { Terminal } from "../output/terminal.ts";
import { examples, yesOption } from "./options.ts";

export function registerUsers(program: Command, terminal: Terminal): void {
  const users = program
    .command("users")
    .description("Look after users.")
    .addHelpText("after", examples("skein users rm alice --yes"));
  users
    .command("rm")
    .description("Delete everything of a user for good: sessions, trash, state, blobs.")
    .argument("<id>", "the user")
    .addOption(yesOption())
    .addHelpText("after", examples("skein users rm alice --yes"))
    .action(async (userId: string, _, command: Command) => {
      const { removeUserCommand } = await import("../commands/users-rm.ts");
      await removeUserCommand(terminal, userId, command.optsWithGlobals());
    });
}
