import type { Command } from "commander";
import type { Terminal } from "../output/terminal.ts";
import { allUsersOption, examples, sessionHelp, upTo, wholeNumber } from "./options.ts";

/** What ids look like, for examples; the runs are those of `send … --key order-17`, `order-18` and `order-19`. */
const run = "71784a37-767d-8ff4-8474-7668da850727";
const lostRun = "8f34080f-b77e-8310-ac37-5d44a2ca836d";
const waitingRun = "6892f418-3bd4-8ed5-b705-91c73433651e";
const approval = "7385348a-ec6b-8b5f-a1b3-c3116b9a7c78";
const letter = "5c224981-9b64-8106-b76d-d75fd672f22c";

export function registerRuns(program: Command, terminal: Terminal): void {
  const runs = program
    .command("runs")
    .description("What sessions are answering, have answered, and wait for.")
    .addHelpText("after", examples("skein runs ls", "skein runs ls --state open --json"));
  runs
    .command("ls")
    .description("List runs, the last first, with what they wait for, and the approvals that are open.")
    .option(
      "--state <states>",
      "only in these states, with commas between; open and ended stand for several; lost: lost input that can be retried",
    )
    .option("--session <ref>", `only of ${sessionHelp}`)
    .option("--limit <number>", "runs at the most, up to 500 (default: 50)", upTo(500))
    .option("--before <seq>", "older ones, as the end of a list says", wholeNumber)
    .addOption(allUsersOption())
    .addHelpText(
      "after",
      examples("skein runs ls", "skein runs ls --session trip --state open,error --limit 10"),
    )
    .action(async (_, command: Command) => {
      const { listRuns } = await import("../commands/runs-ls.ts");
      await listRuns(terminal, command.optsWithGlobals());
    });
  registerOne(runs, terminal);
  registerRetry(runs, terminal);
  registerRelease(runs, terminal);
  registerApprovals(runs, terminal);
}

function registerOne(runs: Command, terminal: Terminal): void {
  runs
    .command("show")
    .description("Everything that is known of a run, and its reply.")
    .argument("<runId>", "the run, as `runs ls` prints it")
    .addHelpText("after", examples(`skein runs show ${run}`, `skein runs show ${run} --json`))
    .action(async (runId: string, _, command: Command) => {
      const { showRun } = await import("../commands/runs.ts");
      await showRun(terminal, runId, command.optsWithGlobals());
    });
  runs
    .command("abort")
    .description("End a run, whoever runs it. What was said so far is kept.")
    .argument("<runId>", "the run, as `runs ls` prints it")
    .addHelpText("after", examples(`skein runs abort ${run}`))
    .action(async (runId: string, _, command: Command) => {
      const { abortRun } = await import("../commands/runs.ts");
      await abortRun(terminal, runId, command.optsWithGlobals());
    });
}

function registerRetry(runs: Command, terminal: Terminal): void {
  runs
    .command("retry")
    .description(
      "Queue the input of a run again that was lost or stopped by a disk fault. The same run again gives the same retry.",
    )
    .argument("<runId>", "the lost run, as `runs ls --state lost` prints it")
    .addHelpText("after", examples(`skein runs retry ${lostRun}`))
    .action(async (runId: string, _, command: Command) => {
      const { retryRun } = await import("../commands/runs.ts");
      await retryRun(terminal, runId, command.optsWithGlobals());
    });
}

function registerRelease(runs: Command, terminal: Terminal): void {
  runs
    .command("release")
    .description("Let any process run a run that waits for an app. Its agent may lack the tools of that app.")
    .argument("<runId>", "the run, as `runs ls` prints it")
    .addHelpText("after", examples(`skein runs release ${waitingRun}`))
    .action(async (runId: string, _, command: Command) => {
      const { releaseRun } = await import("../commands/runs.ts");
      await releaseRun(terminal, runId, command.optsWithGlobals());
    });
}

function registerApprovals(runs: Command, terminal: Terminal): void {
  for (const [name, wanted, what] of [
    ["approve", "approved", "Let a tool call be made that a run asks for."],
    ["deny", "denied", "Do not let a tool call be made that a run asks for."],
  ] as const) {
    runs
      .command(name)
      .description(`${what} The first answer stands.`)
      .argument("<approvalId>", "what is asked, as `runs ls` prints it")
      .addHelpText("after", examples(`skein runs ${name} ${approval}`))
      .action(async (approvalId: string, _, command: Command) => {
        const { resolveApproval } = await import("../commands/runs.ts");
        await resolveApproval(terminal, approvalId, wanted, command.optsWithGlobals());
      });
  }
}

export function registerApprovalList(program: Command, terminal: Terminal): void {
  const approvals = program
    .command("approvals")
    .description("Tool calls that wait for an answer.")
    .addHelpText("after", examples("skein approvals", "skein approvals ls --all-users --json"));
  approvals
    .command("ls", { isDefault: true })
    .description(
      "List tool calls that wait for an answer, newest first. `runs approve` and `runs deny` answer.",
    )
    .option("--session <ref>", `only of ${sessionHelp}`)
    .option("--all", "answered ones too")
    .option("--limit <number>", "approvals at the most, up to 500 (default: 100)", upTo(500))
    .addOption(allUsersOption())
    .addHelpText("after", examples("skein approvals ls", "skein approvals ls --all --limit 10"))
    .action(async (_, command: Command) => {
      const { listApprovals } = await import("../commands/runs-ls.ts");
      await listApprovals(terminal, command.optsWithGlobals());
    });
}

export function registerOutbox(program: Command, terminal: Terminal): void {
  const outbox = program
    .command("outbox")
    .description("Messages on their way to channels, and those that did not get there.")
    .addHelpText("after", examples("skein outbox", "skein outbox ls --state dead --json"));
  outbox
    .command("ls", { isDefault: true })
    .description("List messages, the last first.")
    .option("--state <states>", "only queued, delivered, dead or dropped; several with commas between")
    .option("--limit <number>", "messages at the most, up to 1000 (default: 100)", upTo(1000))
    .addOption(allUsersOption())
    .addHelpText("after", examples("skein outbox ls", "skein outbox ls --state queued,dead --limit 10"))
    .action(async (_, command: Command) => {
      const { listOutbox } = await import("../commands/outbox.ts");
      await listOutbox(terminal, command.optsWithGlobals());
    });
  outbox
    .command("show")
    .description("Everything that is known of a message.")
    .argument("<id>", "the message, as `outbox ls` prints it")
    .addHelpText("after", examples(`skein outbox show ${letter}`))
    .action(async (id: string, _, command: Command) => {
      const { showOutbox } = await import("../commands/outbox.ts");
      await showOutbox(terminal, id, command.optsWithGlobals());
    });
  for (const [name, what] of [
    ["retry", "Send a message again that was given up, from the beginning."],
    ["drop", "Give a message up."],
  ] as const) {
    outbox
      .command(name)
      .description(what)
      .argument("<id>", "the message, as `outbox ls` prints it")
      .addHelpText("after", examples(`skein outbox ${name} ${letter}`))
      .action(async (id: string, _, command: Command) => {
        const { settleOutbox } = await import("../commands/outbox.ts");
        await settleOutbox(terminal, id, name, command.optsWithGlobals());
      });
  }
}
