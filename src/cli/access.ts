import type { Command } from "commander";
import { Option } from "commander";
import type { AccessAction } from "../access/visibility/access-policy.ts";
import { present } from "../core/present.ts";
import type { AccessPayload } from "../protocol/directory.ts";
import type { CommandContext } from "./command.ts";
import { action, examples, sessionHelp } from "./command.ts";
import { resolveRef } from "./connection/resolve-session.ts";
import { withSkeinCalls } from "./connection/with-skein-calls.ts";
import { printPayload } from "./output/answer.ts";
import type { Invocation } from "./output/invocation.ts";
import { printTable } from "./output/table.ts";
import type { Terminal } from "./output/terminal.ts";
import { oneLine, paint } from "./output/terminal.ts";

export function registerAccess(command: Command, context: CommandContext): void {
  command
    .argument("<requester>", sessionHelp)
    .argument("<target>", "the target session, as the requester would refer to it; it does not have to exist")
    .addOption(
      new Option("--action <action>", "check only this action (default: all actions)").choices([
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
    .action(action(context, explainAccess));
}

type Explanation = AccessPayload["explanations"][number];

/** Longer than a terminal line, so that reasons are not truncated. */
const longest = 2000;

/**
 * Any session can be the requester. The target is resolved as the requester would refer to it. The exit code is 0
 * regardless of the decision.
 */
async function explainAccess(
  cli: Invocation<{ readonly action?: AccessAction }>,
  asker: string,
  target: string,
): Promise<void> {
  await withSkeinCalls(cli, async (open) => {
    const { key } = await resolveRef(open, asker);
    const params = { asker: key, target, ...present({ action: cli.options.action }), ...open.reader };
    const payload = await open.calls.call("access.explain", params);
    printPayload(open, payload, () => printAccess(open.terminal, payload));
  });
}

function printAccess(terminal: Terminal, { asker, target, explanations }: AccessPayload): void {
  const who = asker.sandboxed ? `${asker.key} (sandboxed)` : asker.key;
  terminal.out(`${oneLine(`${who} wants to access ${target}`, longest)}\n`);
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
