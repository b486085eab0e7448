import type { Command } from "commander";
import { createIdSource } from "../core/ids.ts";
import { displayKey } from "../core/references.ts";
import type { SchedulePayload } from "../protocol/schedules.ts";
import type { CommandContext } from "./command.ts";
import { action, allUsersOption, examples } from "./command.ts";
import { waitUntilEnded } from "./connection/wait-for-runs.ts";
import type { OpenSkeinCalls } from "./connection/with-skein-calls.ts";
import { withSkeinCalls } from "./connection/with-skein-calls.ts";
import { printAnswer, printPayload } from "./output/answer.ts";
import { CommandFailed } from "./output/errors.ts";
import { formatAge, formatTimeIn, safeText } from "./output/format.ts";
import type { AllUsersOption, Invocation } from "./output/invocation.ts";
import { commandLine, userFilter } from "./output/invocation.ts";
import type { Column } from "./output/table.ts";
import { printList, withUserColumn } from "./output/table.ts";

export function registerSchedules(schedules: Command, context: CommandContext): void {
  schedules.addHelpText("after", examples("skein schedules", "skein schedules run daily"));
  schedules
    .command("ls", { isDefault: true })
    .description("List schedules with their next and last runs.")
    .addOption(allUsersOption())
    .addHelpText("after", examples("skein schedules ls", "skein schedules ls --json"))
    .action(action(context, listSchedules));
  schedules
    .command("run")
    .description("Send a schedule's message now, and print the reply. Later due times are not affected.")
    .argument("<name>", "the schedule's name")
    .option("--no-wait", "exit once the message has been accepted; skein start runs it")
    .addHelpText("after", examples("skein schedules run daily", "skein schedules run daily --no-wait --json"))
    .action(action(context, runSchedule));
  for (const [name, about] of [
    ["pause", "Stop a schedule in all processes until it is resumed, even after a restart."],
    ["resume", "Continue a paused schedule from its next due time."],
  ] as const) {
    schedules
      .command(name)
      .description(about)
      .argument("<name>", "the schedule's name")
      .addHelpText("after", examples(`skein schedules ${name} daily`))
      .action(action(context, (cli, schedule: string) => setPaused(cli, schedule, name)));
  }
}

async function listSchedules(cli: Invocation<AllUsersOption>): Promise<void> {
  await withSkeinCalls(cli, async ({ calls, asker }) => {
    const payload = await calls.call("schedules.list", userFilter(cli));
    printList(cli, payload, {
      columns: withUserColumn(
        cli,
        columns((key) => displayKey(key, asker), cli.terminal.now()),
      ),
      rows: payload.schedules,
      empty: "no schedules are configured",
    });
  });
}

function columns(shown: (key: string) => string, now: number): Column<SchedulePayload>[] {
  return [
    { title: "SCHEDULE", text: ({ name }) => name, whole: true },
    { title: "CRON", text: ({ cron, timezone }) => `${cron} ${timezone}`, whole: true, spare: 2 },
    { title: "AGENT", text: ({ agentId }) => agentId, spare: 3 },
    { title: "NEXT", text: (row) => (row.pausedAt === undefined ? nextText(row) : "paused"), whole: true },
    {
      title: "LAST",
      text: ({ lastRun }) => (lastRun === undefined ? "" : formatAge(now - lastRun.at)),
      align: "right",
    },
    { title: "STATE", text: ({ lastRun }) => lastRun?.state ?? "" },
    { title: "SESSION", text: ({ lastRun }) => shownKey(lastRun?.sessionKey, shown), least: 12, spare: 1 },
    { title: "MESSAGE", text: ({ message }) => message, least: 12, spare: 4 },
  ];
}

function shownKey(key: string | undefined, shown: (key: string) => string): string {
  return key === undefined ? "" : shown(key);
}

function nextText({ nextAt, timezone }: SchedulePayload): string {
  return nextAt === undefined ? "never" : formatTimeIn(nextAt, timezone);
}

async function runSchedule(cli: Invocation<{ readonly wait?: boolean }>, name: string): Promise<void> {
  const waits = cli.options.wait !== false;
  const idempotencyKey = createIdSource()();
  const run = async (open: OpenSkeinCalls) => {
    const accepted = await open.calls.call("schedules.run", { name, idempotencyKey, ...open.user });
    const { runId, sessionKey, waitsForApp } = accepted;
    if (!waits || waitsForApp !== undefined) {
      const next = waitsForApp === undefined ? commandLine(cli, "start") : `the app ${waitsForApp}`;
      return printAnswer(cli, accepted, [
        `accepted; ${open.store === null ? "the gateway" : next} will run it`,
        ["run", runId],
        ["session", sessionKey],
      ]);
    }
    const { state, reply = "", error } = await waitUntilEnded(open, runId);
    printPayload(cli, accepted, () => cli.terminal.out(`${safeText(error?.message ?? reply)}\n`));
    if (state !== "ok") throw new CommandFailed();
  };
  await withSkeinCalls(cli, run, { workers: waits && "own" });
}

async function setPaused(cli: Invocation, name: string, act: "pause" | "resume"): Promise<void> {
  await withSkeinCalls(cli, async ({ calls, user }) => {
    const payload = await calls.call(`schedules.${act}`, { name, ...user });
    const done = payload.pausedAt === undefined ? `continues; next due: ${nextText(payload)}` : "is paused";
    printAnswer(cli, payload, [`the schedule ${name} ${done}`]);
  });
}
