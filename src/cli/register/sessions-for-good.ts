import type { Command } from "commander";
import type { Terminal } from "../output/terminal.ts";
import { examples, refHelp, sessionHelp, yesOption } from "./options.ts";

/** Commands that take away, and those that bring back. */
export function registerForGood(sessions: Command, terminal: Terminal): void {
  sessions
    .command("rm")
    .description("Move a session to the trash; with --purge, delete one there for good.")
    .argument("<ref>", sessionHelp)
    .option("--purge", "delete a session that is in the trash for good")
    .addOption(yesOption())
    .addHelpText("after", examples("skein sessions rm trip", "skein sessions rm old-trip --purge --yes"))
    .action(async (name: string, _, command: Command) => {
      const { removeCommand } = await import("../commands/sessions-remove.ts");
      await removeCommand(terminal, name, command.optsWithGlobals());
    });
  sessions
    .command("restore")
    .description("Bring a session back from the trash.")
    .argument("<ref>", "a session in the trash: key, session id, label, or a beginning of the id")
    .addHelpText("after", examples("skein sessions restore old-trip"))
    .action(async (name: string, _, command: Command) => {
      const { restoreCommand } = await import("../commands/sessions-remove.ts");
      await restoreCommand(terminal, name, command.optsWithGlobals());
    });
  sessions
    .command("redact")
    .description("Take what entries say out for good, in every copy. Their place in the tree stays.")
    .argument("<ref>", sessionHelp)
    .argument("<entryId...>", "entries (their ids, or unique endings of them)")
    .addOption(yesOption())
    .addHelpText("after", examples("skein sessions redact trip 48cf5c5e --yes"))
    .action(async (name: string, entryIds: string[], _, command: Command) => {
      const { redactCommand } = await import("../commands/sessions-redact.ts");
      await redactCommand(terminal, name, entryIds, command.optsWithGlobals());
    });
  sessions
    .command("repair")
    .description(
      "Write a damaged session file anew, the original kept beside it; of a session, show the damage.",
    )
    .argument("<ref>", refHelp)
    .addHelpText("after", examples("skein sessions repair ./trip.jsonl", "skein sessions repair trip --json"))
    .action(async (name: string, _, command: Command) => {
      const { repairSession } = await import("../commands/sessions-repair.ts");
      await repairSession(terminal, name, command.optsWithGlobals());
    });
}
