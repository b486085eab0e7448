import type { Command } from "commander";
import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import { displayKey } from "../core/references.ts";
import type { OutboxRowPayload } from "../protocol/outbox.ts";
import type { OutboxState } from "../runs/run.ts";
import type { CommandContext } from "./command.ts";
import { action, allUsersOption, examples, upTo } from "./command.ts";
import { otherUsersNote } from "./connection/other-users.ts";
import { withSkeinCalls } from "./connection/with-skein-calls.ts";
import type { AnswerLine } from "./output/answer.ts";
import { printAnswer, printLines, printPayload } from "./output/answer.ts";
import { formatAge, formatTime, safeText } from "./output/format.ts";
import type { AllUsersOption, Invocation } from "./output/invocation.ts";
import { commandLine, userFilter } from "./output/invocation.ts";
import type { Column } from "./output/table.ts";
import { printList, withUserColumn } from "./output/table.ts";

/** The limit of `outbox.list`. */
const maxRows = 1000;
const exampleId = "5c224981-9b64-8106-b76d-d75fd672f22c";

export function registerOutbox(outbox: Command, context: CommandContext): void {
  outbox.addHelpText("after", examples("skein outbox", "skein outbox ls --state dead --json"));
  outbox
    .command("ls", { isDefault: true })
    .description("List messages, newest first.")
    .option("--state <states>", "only these states, separated by commas: queued, delivered, dead, dropped")
    .option("--limit <number>", "maximum number of messages, up to 1000 (default: 100)", upTo(maxRows))
    .addOption(allUsersOption())
    .addHelpText("after", examples("skein outbox ls", "skein outbox ls --state queued,dead --limit 10"))
    .action(action(context, listOutbox));
  outbox
    .command("show")
    .description("Show a message's details.")
    .argument("<id>", "the message's ID, as printed by `outbox ls`")
    .addHelpText("after", examples(`skein outbox show ${exampleId}`))
    .action(action(context, showOutbox));
  for (const [name, about] of [
    ["retry", "Retry delivery of a dead message, with the number of attempts reset."],
    ["drop", "Discard a message without delivering it."],
  ] as const) {
    outbox
      .command(name)
      .description(about)
      .argument("<id>", "the message's ID, as printed by `outbox ls`")
      .addHelpText("after", examples(`skein outbox ${name} ${exampleId}`))
      .action(action(context, (cli, id: string) => settleOutbox(cli, id, name)));
  }
}

interface OutboxListOptions extends AllUsersOption {
  readonly state?: string;
  readonly limit?: number;
}

const states: readonly OutboxState[] = ["queued", "delivered", "dead", "dropped"];

async function listOutbox(cli: Invocation<OutboxListOptions>): Promise<void> {
  const { state, limit } = cli.options;
  const wanted = state?.split(",").map(stateOf);
  const filter = present({ states: wanted, limit });
  await withSkeinCalls(cli, async ({ calls, asker, userId }) => {
    const payload = await calls.call("outbox.list", { ...filter, ...userFilter(cli) });
    const notes = await otherUsersNote(cli, async () => {
      const { messages } = await calls.call("outbox.list", { ...filter, limit: maxRows, allUsers: true });
      const others = messages.filter((row) => (row.userId ?? null) !== userId).length;
      return { others, isExact: messages.length < maxRows };
    });
    printList(cli, payload, {
      columns: withUserColumn(
        cli,
        columns((key) => displayKey(key, asker), cli.terminal.now()),
      ),
      rows: payload.messages,
      empty: wanted === undefined ? "the outbox is empty" : "no messages match",
      notes,
    });
  });
}

function stateOf(text: string): OutboxState {
  const name = text.trim().toLowerCase();
  const state = states.find((each) => each === name);
  if (state !== undefined) return state;
  const advice = `Use one of ${states.join(", ")}`;
  throw new SkeinError("invalid_arguments", { problem: `"${text}" is not a message state`, advice });
}

function columns(shown: (key: string) => string, now: number): Column<OutboxRowPayload>[] {
  return [
    { title: "MESSAGE", text: ({ outboxId }) => outboxId, whole: true },
    { title: "STATE", text: ({ state }) => state },
    { title: "TO", text: describeTarget, least: 10 },
    { title: "SESSION", text: ({ sessionKey }) => shown(sessionKey), whole: true, spare: 3 },
    { title: "TRIES", text: ({ attempts }) => String(attempts), align: "right", spare: 2 },
    { title: "TEXT", text: ({ text }) => text, least: 12, spare: 4 },
    { title: "ERROR", text: (row) => whyQueued(row) ?? row.lastError ?? "", least: 12, spare: 1 },
    { title: "AGE", text: ({ createdAt }) => formatAge(now - createdAt), align: "right" },
  ];
}

function whyQueued({ waitsForChannel, target, app }: OutboxRowPayload): string | undefined {
  if (waitsForChannel !== true) return undefined;
  return app === undefined
    ? `waiting for a process that provides the channel ${target.channel}`
    : `waiting for the app ${app}, which provides the channel ${target.channel}`;
}

function describeTarget({ target: { channel, to, threadId } }: OutboxRowPayload): string {
  return [channel, to, threadId].filter((part) => part !== undefined).join(" ");
}

async function showOutbox(cli: Invocation, outboxId: string): Promise<void> {
  await withSkeinCalls(cli, async ({ calls, user }) => {
    const { messages } = await calls.call("outbox.list", { outboxId, ...user });
    const [payload] = messages;
    if (payload === undefined) {
      const advice = `List the messages with ${commandLine(cli, "outbox", "ls")}`;
      throw new SkeinError("not_found", { what: "Outbox message", name: outboxId, advice });
    }
    printPayload(cli, payload, () => {
      printLines(cli.terminal, linesOf(payload));
      cli.terminal.out(`\n${safeText(payload.text)}\n`);
    });
  });
}

function linesOf(row: OutboxRowPayload): AnswerLine[] {
  return [
    `message ${row.outboxId}`,
    ["state", row.state],
    ["to", describeTarget(row)],
    ["session", `${row.sessionKey} (${row.sessionId})`],
    ["run", row.runId],
    ["written", formatTime(row.createdAt)],
    ["tries", String(row.attempts)],
    ["next", row.nextAt === undefined ? undefined : formatTime(row.nextAt)],
    ["ended", row.endedAt === undefined ? undefined : formatTime(row.endedAt)],
    ["reason", whyQueued(row)],
    ["error", row.lastError],
  ];
}

async function settleOutbox(cli: Invocation, outboxId: string, act: "retry" | "drop"): Promise<void> {
  await withSkeinCalls(cli, async ({ calls, user }) => {
    const payload = await calls.call(`outbox.${act}`, { outboxId, ...user });
    const done =
      payload.state === "queued"
        ? "will be sent by the next process that uses this folder"
        : `is ${payload.state}`;
    printAnswer(cli, payload, [`the message to ${describeTarget(payload)} ${done}`]);
  });
}
