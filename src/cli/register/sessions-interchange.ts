import type { Command } from "commander";
import { CommandFailed } from "../output/errors.ts";
import type { Terminal } from "../output/terminal.ts";
import { examples, refHelp } from "./options.ts";

/** Sessions in from elsewhere, and out to be read. */
export function registerInterchange(sessions: Command, terminal: Terminal): void {
  sessions
    .command("export")
    .description("Write a session out: JSONL for programs, Markdown or one HTML file to read.")
    .argument("<ref>", refHelp)
    .option("--format <format>", "jsonl, md or html (default: as the file's name ends, else jsonl)")
    .option("-o, --output <file>", "write to this file instead of printing")
    .option("--all", "in Markdown every branch; the other formats have them anyway")
    .option("--force", "replace the file if it is there")
    .addHelpText(
      "after",
      examples(
        "skein sessions export trip -o kyoto.html",
        "skein sessions export trip --format md --all",
        "skein sessions export ./trip.jsonl --format md",
      ),
    )
    .action(async (name: string, _, command: Command) => {
      const { exportCommand } = await import("../commands/sessions-export.ts");
      await exportCommand(terminal, name, command.optsWithGlobals());
    });
  sessions
    .command("import")
    .description(
      "Bring in sessions of pi, OpenClaw, Claude Code or Codex; what was imported before is skipped.",
    )
    .argument("<path...>", "transcripts, folders of them, or OpenClaw's own folder")
    .option("--from <program>", "pi, openclaw, claude-code or codex; of folders only its sessions are taken")
    .option("--dry-run", "only say what would be imported")
    .option("--key <key>", "the key of the imported session (default: by its session id)")
    .option("--label <label>", "a label for the imported session, unique for the agent")
    .option("--cwd <folder>", "where the imported sessions work (default: where their agent works)")
    .option("--model <provider/model>", "the model that the imported sessions answer with")
    .option("--send-policy <policy>", "allow or deny answers to leave for a channel")
    .option("--deliver-to <channel:to>", "where answers of the imported sessions are delivered")
    .option(
      "--keep-metadata",
      "apply keys, labels, delivery, models, send policies, lineage and folders as the files state them",
    )
    .addHelpText(
      "after",
      examples(
        "skein sessions import ./trip.jsonl --dry-run",
        "skein sessions import ./transcripts --from pi",
        "skein sessions import ./trip.jsonl --agent research --label trip",
        "skein sessions import ./transcripts --keep-metadata",
      ),
    )
    .action(async (paths: string[], _, command: Command) => {
      const { importCommand } = await import("../commands/sessions-import.ts");
      if (!(await importCommand(terminal, paths, command.optsWithGlobals()))) throw new CommandFailed();
    });
}
