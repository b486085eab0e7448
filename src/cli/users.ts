import type { Command } from "commander";
import { SkeinError } from "../core/errors.ts";
import { userSegment } from "../core/path-segment.ts";
import { present } from "../core/present.ts";
import type { UserRow } from "../protocol/users.ts";
import type { CommandContext } from "./command.ts";
import { action, examples, upTo, yesOption } from "./command.ts";
import { waitForIndex, withCalls } from "./connection/with-calls.ts";
import { erasePendingLines, printAnswer } from "./output/answer.ts";
import { formatAge, formatBytes, formatCount, pluralize } from "./output/format.ts";
import type { Invocation } from "./output/invocation.ts";
import { commandLine } from "./output/invocation.ts";
import type { Column } from "./output/table.ts";
import { pageNotes, printList, userColumn } from "./output/table.ts";
import { confirm } from "./output/terminal.ts";

export function registerUsers(users: Command, context: CommandContext): void {
  users.addHelpText("after", examples("skein users ls", "skein users rm alice --yes"));
  users
    .command("ls")
    .description("List users by ID, with their totals and last activity.")
    .option("--limit <number>", "maximum number of users, up to 500 (default: 100)", upTo(500))
    .option("--cursor <cursor>", "continue after the page that returned this cursor")
    .addHelpText("after", examples("skein users ls", "skein users ls --limit 10 --json"))
    .action(action(context, listUsers));
  users
    .command("rm")
    .description("Permanently delete all of a user's data: sessions, trash, state and blobs.")
    .argument("<id>", "the user's ID")
    .addOption(yesOption())
    .addHelpText("after", examples("skein users rm alice --yes"))
    .action(action(context, removeUser));
}

interface UsersListOptions {
  readonly limit?: number;
  readonly cursor?: string;
}

async function listUsers(cli: Invocation<UsersListOptions>): Promise<void> {
  const { limit, cursor, user, agent } = cli.options;
  if (user !== undefined || agent !== undefined) {
    const problem = "This command lists all users, so --user and --agent do not apply";
    throw new SkeinError("invalid_arguments", { problem, advice: "Remove --user and --agent" });
  }
  await withCalls(cli, async (open) => {
    await waitForIndex(open);
    const payload = await open.calls.call("users.list", present({ limit, cursor }));
    const { users, nextCursor, indexing } = payload;
    const notes = pageNotes(nextCursor, indexing);
    printList(cli, payload, { columns: columns(cli.terminal.now()), rows: users, empty: "no users", notes });
  });
}

function columns(now: number): Column<UserRow>[] {
  return [
    userColumn,
    { title: "SESSIONS", text: ({ sessions }) => String(sessions), align: "right" },
    { title: "RUNS", text: ({ runs }) => String(runs), align: "right" },
    { title: "OPEN", text: ({ openRuns }) => String(openRuns), align: "right" },
    { title: "TOKENS", text: ({ totalTokens }) => formatCount(totalTokens), align: "right" },
    { title: "ACCESS TOKENS", text: ({ accessTokens }) => String(accessTokens), align: "right", spare: 1 },
    { title: "SIZE", text: ({ bytes }) => formatBytes(bytes), align: "right" },
    {
      title: "ACTIVE",
      text: ({ lastActiveAt }) => (lastActiveAt === undefined ? "" : formatAge(now - lastActiveAt)),
      align: "right",
    },
  ];
}

async function removeUser(cli: Invocation<{ readonly yes?: boolean }>, userId: string): Promise<void> {
  userSegment(userId);
  const { user, agent } = cli.options;
  if ((user !== undefined && user !== userId) || agent !== undefined) {
    throw new SkeinError("invalid_arguments", {
      problem: `This command deletes all of user ${userId}'s data, so --user and --agent do not apply`,
      advice: "Remove --user and --agent",
    });
  }
  const ofUser = { ...cli, options: { ...cli.options, user: userId } };
  await withCalls(ofUser, async ({ calls, place }) => {
    await confirm(cli, `Permanently delete all of user ${userId}'s data?`);
    const done = await calls.call("users.remove", { userId });
    if (done.found === false) {
      const list = commandLine(cli, "users", "ls");
      const advice = `${place} has no sessions or tokens for this user; run ${list} to list its users`;
      throw new SkeinError("not_found", { what: "User", name: userId, advice });
    }
    printAnswer(cli, done, [
      `permanently deleted user ${userId} and ${pluralize(done.sessions, "session")}`,
      ...erasePendingLines(done),
    ]);
  });
}
