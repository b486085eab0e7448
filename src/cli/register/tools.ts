import type { Command } from "commander";
import { Option } from "commander";
import type { Terminal } from "../output/terminal.ts";
import { examples, wholeNumber } from "./options.ts";

const forWhom =
  "the session that it is done for: key, session id, label, or a beginning of the id (default: main)";

/** Commands that do what an agent's session tools do. */
export function registerTools(program: Command, terminal: Terminal): void {
  registerSpawn(program, terminal);
  program
    .command("tool")
    .description(
      "Call a session tool for a session, print its result, and stay until all that it set off has ended.",
    )
    .argument("<name>", "the tool: sessions_list, sessions_history, sessions_send, …")
    .argument("[json]", "its arguments as one JSON object; - reads it from the input")
    .option("--session <ref>", forWhom)
    .option("--key <idempotencyKey>", "the same one again finds what the first has done")
    .option("--no-wait", "exit at once; skein start runs what it sets off")
    .addHelpText(
      "after",
      examples(
        "skein tool sessions_list",
        `skein tool sessions_history '{"sessionKey": "main", "limit": 5}' --json`,
        `skein tool sessions_list '{"kinds": ["other"]}' --session trip`,
      ),
    )
    .action(async (name: string, json: string | undefined, _, command: Command) => {
      const { toolCommand } = await import("../commands/tool.ts");
      await toolCommand(terminal, name, json, command.optsWithGlobals());
    });
}

function registerSpawn(program: Command, terminal: Terminal): void {
  program
    .command("spawn")
    .description(
      "Give a task to a new session, print its result, and stay until all that it set off has ended.",
    )
    .argument("<task...>", "what it is to do")
    .option("--session <ref>", forWhom)
    .option("--under <agentId>", "the agent that does it (default: that of the session)")
    .addOption(
      new Option(
        "--runtime <runtime>",
        "acp: --under is somebody else's agent, over the Agent Client Protocol",
      ).choices(["subagent", "acp"]),
    )
    .option("--resume <id>", "with --runtime acp: go on with this session of the agent's own")
    .option("--stream", "with --runtime acp: put notes of its progress into the session that it is done for")
    .option("--label <label>", "what the new session is called")
    .option(
      "--model <provider/model>",
      "answer with this model; with --runtime acp, in the agent's own words",
    )
    .option(
      "--thinking <level>",
      "how much the model is to think; with --runtime acp, in the agent's own words",
    )
    .addOption(
      new Option("--mode <mode>", "run ends with its answer, session stays").choices(["run", "session"]),
    )
    .addOption(
      new Option("--context <context>", "fork begins with the other session's conversation").choices([
        "isolated",
        "fork",
      ]),
    )
    .addOption(
      new Option("--cleanup <cleanup>", "what becomes of the session when it has ended").choices([
        "keep",
        "delete",
      ]),
    )
    .option("--cwd <folder>", "where it works (default: where the other session does)")
    .option("--timeout <seconds>", "the longest that it may take", wholeNumber)
    .option("--key <idempotencyKey>", "the same one again is the same child")
    .option(
      "--background",
      "print the new session at once; its end is told to the session that it is done for",
    )
    .option("--no-wait", "exit once it is accepted; skein start runs it")
    .addHelpText(
      "after",
      examples(
        "skein spawn describe the gardens of Kyoto",
        "skein spawn describe the food of Kyoto --session trip --label kyoto-food --json",
        "skein spawn describe the temples of Kyoto --background",
        "skein spawn mend the failing test --runtime acp --under codex",
      ),
    )
    .action(async (words: string[], _, command: Command) => {
      const { spawnCommand } = await import("../commands/spawn.ts");
      await spawnCommand(terminal, words, command.optsWithGlobals());
    });
}
