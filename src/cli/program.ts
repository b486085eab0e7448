import { Command } from "commander";
import type { Terminal } from "./output/terminal.ts";
import { registerAccess } from "./register/access.ts";
import { registerAcp } from "./register/acp.ts";
import { registerContext } from "./register/context.ts";
import { registerInit } from "./register/init.ts";
import { registerMcp } from "./register/mcp.ts";
import { examples, globalOptions } from "./register/options.ts";
import { registerApprovalList, registerOutbox, registerRuns } from "./register/runs.ts";
import { registerSessions } from "./register/sessions.ts";
import { registerStart } from "./register/start.ts";
import { registerTalking } from "./register/talking.ts";
import { registerToken } from "./register/token.ts";
import { registerTools } from "./register/tools.ts";
import { registerUpkeep } from "./register/upkeep.ts";
import { registerUsers } from "./register/users.ts";

/** Every command, its options and its help. What a command does is loaded when it runs. */
export function createProgram(terminal: Terminal, version: string): Command {
  const program = new Command("skein")
    .description("Durable, branching sessions for AI agents.")
    .version(version)
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
  for (const option of globalOptions()) program.addOption(option);
  registerInit(program, terminal);
  registerStart(program, terminal, version);
  registerTalking(program, terminal);
  registerTools(program, terminal);
  registerRuns(program, terminal);
  registerApprovalList(program, terminal);
  registerOutbox(program, terminal);
  registerSessions(program, terminal);
  registerContext(program, terminal);
  registerAccess(program, terminal);
  registerMcp(program, terminal, version);
  registerAcp(program, terminal, version);
  registerToken(program, terminal);
  registerUsers(program, terminal);
  registerUpkeep(program, terminal);
  return program;
}
