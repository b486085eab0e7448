import { Command, CommanderError } from "commander";
import type { CommandContext, LazyCommand } from "./command.ts";
import { addLazyCommands, examples } from "./command.ts";
import type { ExitCode } from "./output/errors.ts";
import { reportFailure } from "./output/errors.ts";
import type { Terminal } from "./output/terminal.ts";
import { processTerminal } from "./output/terminal.ts";

export { exitOnSignals, type Terminal } from "./output/terminal.ts";

/**
 * Runs one command line (without `node` and the script) and returns the exit code. `overrides` replaces parts of the
 * process's own terminal.
 */
export async function runCli(
  args: readonly string[],
  version: string,
  overrides: Partial<Terminal> = {},
): Promise<ExitCode> {
  const terminal: Terminal = { ...processTerminal(), ...overrides };
  const json = args.includes("--json");
  let entered: Command | null = null;
  const enter = (command: Command) => {
    entered = command;
  };
  const program = createProgram({ terminal, version, enter }, json);
  try {
    await program.parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    const failed = { ...terminal, command: [terminal.command, ...pathOf(entered)].join(" ") };
    if (!(error instanceof CommanderError)) return reportFailure(error, failed, json);
    if (error.exitCode === 0) return 0;
    const isHelp = error.code === "commander.help" && !json;
    return isHelp ? 2 : reportFailure(error, failed, json);
  }
}

/** Returns the names on the path from the program to a command. */
function pathOf(command: Command | null): string[] {
  return command === null || command.parent === null ? [] : [...pathOf(command.parent), command.name()];
}

/**
 * Every command, with the text that `skein --help` shows for it. The arguments, options and examples of each command
 * are in its own file.
 */
const commands: readonly LazyCommand[] = [
  {
    name: "init",
    usage: "[options]",
    about:
      "Create a skein.yaml in the current folder or in --dir, based on the API keys and the Ollama server that are found.",
    load: async () => (await import("./init.ts")).registerInit,
  },
  {
    name: "start",
    usage: "[options]",
    about: "Start a folder's gateway, print a link to it, and run until stopped.",
    load: async () => (await import("./start.ts")).registerStart,
  },
  {
    name: "reload",
    usage: "",
    about:
      "Make the running gateway apply the whole configuration. Most changes are applied automatically, but new or changed commands for MCP servers and ACP agents take effect only after this command or a restart.",
    load: async () => (await import("./start.ts")).registerReload,
  },
  {
    name: "chat",
    usage: "[options] [ref]",
    about: "Chat with a session, line by line. Each line of piped input is one turn.",
    load: async () => (await import("./chat.ts")).registerChat,
  },
  {
    name: "send",
    usage: "[options] <ref> <text...>",
    about: "Send a message to a session, print the reply, and wait for everything that the message started.",
    load: async () => (await import("./send.ts")).registerSend,
  },
  {
    name: "spawn",
    usage: "[options] <task...>",
    about: "Spawn a new session for a task, print its result, and wait for everything that it started.",
    load: async () => (await import("./spawn.ts")).registerSpawn,
  },
  {
    name: "tool",
    usage: "[options] <name> [json]",
    about:
      "Call a session tool on behalf of a session, print its result, and wait for everything that it started.",
    load: async () => (await import("./tool.ts")).registerTool,
  },
  {
    name: "runs",
    usage: "",
    about: "List, show, abort and retry runs, and answer their approval requests.",
    load: async () => (await import("./runs.ts")).registerRuns,
  },
  {
    name: "approvals",
    usage: "",
    about: "List tool calls that are waiting for approval.",
    load: async () => (await import("./runs-ls.ts")).registerApprovals,
  },
  {
    name: "outbox",
    usage: "",
    about: "List, show, retry and drop outgoing messages to channels.",
    load: async () => (await import("./outbox.ts")).registerOutbox,
  },
  {
    name: "schedules",
    usage: "",
    about: "List, run, pause and resume the configured schedules.",
    load: async () => (await import("./schedules.ts")).registerSchedules,
  },
  {
    name: "sessions",
    usage: "",
    about: "Read and change sessions.",
    load: async () => (await import("./sessions.ts")).registerSessions,
  },
  {
    name: "context",
    usage: "[options] <ref>",
    about:
      "Print the request that would be sent to a model for a session's current state, without sending it.",
    load: async () => (await import("./context.ts")).registerContext,
  },
  {
    name: "access",
    usage: "[options] <requester> <target>",
    about: "Explain whether a session can access another session, and which rule determines this.",
    load: async () => (await import("./access.ts")).registerAccess,
  },
  {
    name: "mcp",
    usage: "",
    about:
      "Serve MCP over stdio, so that another program's agent can use the session tools and read sessions as resources.",
    load: async () => (await import("./mcp.ts")).registerMcp,
  },
  {
    name: "acp",
    usage: "",
    about:
      "Serve ACP over stdio, so that an editor (Zed, JetBrains, Neovim) can use an agent and its sessions.",
    load: async () => (await import("./acp.ts")).registerAcp,
  },
  {
    name: "token",
    usage: "",
    about: "Manage access tokens for a folder's gateway.",
    load: async () => (await import("./token.ts")).registerToken,
  },
  {
    name: "link",
    usage: "",
    about:
      "Print a one-time link that signs a browser into the running gateway. It expires after ten minutes.",
    load: async () => (await import("./link.ts")).registerLink,
  },
  {
    name: "users",
    usage: "",
    about: "List and delete users.",
    load: async () => (await import("./users.ts")).registerUsers,
  },
  {
    name: "doctor",
    usage: "[options]",
    about:
      "Check files, configuration and maintenance, and briefly start each ACP agent and MCP server to see whether it responds. Changes nothing without --fix.",
    load: async () => (await import("./doctor.ts")).registerDoctor,
  },
  {
    name: "backup",
    usage: "<folder>",
    about:
      "Write a consistent snapshot of sessions, queued work and the configuration to a new or empty folder. Does not include .env, tokens or agents' working directories.",
    load: async () => (await import("./backup.ts")).registerBackup,
  },
  {
    name: "restore",
    usage: "<backup>",
    about: "Restore a backup to the folder given by --dir, which must be new or empty.",
    load: async () => (await import("./backup.ts")).registerRestore,
  },
  {
    name: "store",
    usage: "",
    about: "Copy everything from a folder to PostgreSQL or back.",
    load: async () => (await import("./store-migrate.ts")).registerStore,
  },
];

/**
 * Returns the program with its commands. A command's options are added only when a command line selects the command.
 * If `isQuiet` is set, only the caller reports usage errors.
 */
export function createProgram(context: CommandContext, isQuiet = false): Command {
  const { terminal, version } = context;
  const program = new Command("skein")
    // Commands inherit these settings when they are added.
    .exitOverride()
    .configureOutput({
      writeOut: terminal.out,
      writeErr: isQuiet ? () => undefined : terminal.err,
      outputError: () => undefined,
    })
    .description("Durable, branching sessions for AI agents.")
    .version(version)
    .option(
      "--dir <folder>",
      "the folder that contains the sessions (default: the configured folder, otherwise ~/.skein)",
    )
    .option(
      "--config <file>",
      "the configuration file (default: skein.yaml in the current folder or the nearest parent)",
    )
    .option("--user <id>", "the user whose sessions to use (default: the unnamed user)")
    .option(
      "--agent <id>",
      "resolve main and labels for this agent (default: main), and list only its sessions",
    )
    .option("--json", "print JSON and nothing else")
    .configureHelp({ showGlobalOptions: true })
    .addHelpText(
      "after",
      examples(
        "skein start",
        "skein send main plan three days in Kyoto",
        "skein spawn describe the gardens of Kyoto",
        "skein tool sessions_list --json",
        "skein access trip cron:daily",
        "skein sessions ls",
        "skein sessions show trip --limit 5",
        "skein sessions tree ./trip.jsonl",
        "skein context trip --json",
      ),
    );
  addLazyCommands(program, context, commands);
  return program;
}
