import type { Command } from "commander";
import { Option } from "commander";
import type { AccessAction } from "../access/visibility/access-policy.ts";
import { present } from "../core/present.ts";
import type { AccessPayload } from "../protocol/directory.ts";
import type { CommandContext } from "./command.ts";
import { examples, sessionHelp } from "./command.ts";
import { resolveRef } from "./connection/resolve-session.ts";
import { withSkeinCalls } from "./connection/with-skein-calls.ts";
import type { GlobalOptions } from "./output/global-options.ts";
import { printTable } from "./output/table.ts";
import type { Terminal } from "./output/terminal.ts";
import { oneLine, paint, printJson } from "./output/terminal.ts";

export function registerAccess(command: Command, { terminal }: CommandContext): void {
  command
    .argument("<asker>", sessionHelp)
    .argument("<target>", "the other session, as the asker would name it; it need not exist")
    .addOption(
      new Option("--action <action>", "only this action (default: each one)").choices([
        "list",
        "history",
        "send",
        "status",
      ]),
    )
    .addHelpText(
      "after",
      examples(
        "skein access trip cron:daily",
        "skein access trip subagent:food --action send",
        "skein access holiday agent:research:main --action history --json",
      ),
    )
    .action((asker: string, target: string) =>
      accessCommand(terminal, asker, target, command.optsWithGlobals()),
    );
}

interface AccessOptions extends GlobalOptions {
  readonly action?: AccessAction;
}

type Explanation = AccessPayload["explanations"][number];

/** Longer than a terminal line, so that a reason is never cut. */
const longest = 2000;

/** The asker can be any session; the target is resolved as the asker would name it. Every decision exits with 0. */
async function accessCommand(
  terminal: Terminal,
  asker: string,
  target: string,
  options: AccessOptions,
): Promise<void> {
  await withSkeinCalls(terminal, options, { workers: false }, async (open) => {
    const { calls, reader } = open;
    const { key } = await resolveRef(open, asker);
    const { action } = options;
    const payload = await calls.call("access.explain", {
      asker: key,
      target,
      ...present({ action }),
      ...reader,
    });
    if (options.json === true) printJson(terminal, payload);
    else printAccess(terminal, payload);
  });
}

function printAccess(terminal: Terminal, { asker, target, explanations }: AccessPayload): void {
  const who = asker.sandboxed ? `${asker.key} (sandboxed)` : asker.key;
  terminal.out(`${oneLine(`${who} asks for ${target}`, longest)}\n`);
  for (const explanation of explanations) {
    terminal.out("\n");
    printTable(
      terminal,
      [
        { title: "RULE", text: ({ rule }) => rule },
        { title: "OUTCOME", text: ({ outcome }) => outcome },
        { title: "REASON", text: ({ reason }) => reason, least: 20 },
      ],
      explanation.steps,
    );
    printDecision(terminal, explanation);
  }
}

function printDecision(terminal: Terminal, { action, decision, steps }: Explanation): void {
  const word = decision.allowed
    ? paint(terminal, "green", "allowed")
    : paint(terminal, "red", `refused, ${decision.code}`);
  const reason = oneLine(steps.at(-1)?.reason ?? "", longest);
  terminal.out(`${paint(terminal, "bold", action)}: ${word}. ${reason}\n`);
}
