import type { Command } from "commander";
import { SkeinError } from "../core/errors.ts";
import { userSegment } from "../core/path-segment.ts";
import { present } from "../core/present.ts";
import type { UserRow } from "../protocol/users.ts";
import type { CommandContext } from "./command.ts";
import { examples, upTo, yesOption } from "./command.ts";
import { waitForIndex, withCalls } from "./connection/with-calls.ts";
import { answer, erasePendingLines } from "./output/answer.ts";
import { formatAge, formatBytes, formatCount, pluralize } from "./output/format.ts";
import type { GlobalOptions } from "./output/global-options.ts";
import { commandLine, userColumn } from "./output/global-options.ts";
import type { Column } from "./output/table.ts";
import { printTable } from "./output/table.ts";
import type { Terminal } from "./output/terminal.ts";
import { confirm, printJson, printNote } from "./output/terminal.ts";

export function registerUsers(users: Command, { terminal }: CommandContext): void {
  users.addHelpText("after", examples("skein users ls", "skein users rm alice --yes"));
  users
    .command("ls")
    .description("List users by ID, with what they have and when they were last active.")
    .option("--limit <number>", "at most this many users, up to 500 (default: 100)", upTo(500))
    .option("--cursor <cursor>", "continue after the page that returned this cursor")
    .addHelpText("after", examples("skein users ls", "skein users ls --limit 10 --json"))
    .action((_, command: Command) => listUsersCommand(terminal, command.optsWithGlobals()));
  users
    .command("rm")
    .description("Delete everything of a user for good: sessions, trash, state, blobs.")
    .argument("<id>", "the user")
    .addOption(yesOption())
    .addHelpText("after", examples("skein users rm alice --yes"))
    .action((userId: string, _, command: Command) =>
      removeUserCommand(terminal, userId, command.optsWithGlobals()),
    );
}

interface UsersListOptions extends GlobalOptions {
  readonly limit?: number;
  readonly cursor?: string;
}

async function listUsersCommand(terminal: Terminal, options: UsersListOptions): Promise<void> {
  const { limit, cursor, user, agent } = options;
  if (user !== undefined || agent !== undefined) {
    const problem = "This command lists all users, so --user and --agent do not apply";
    throw new SkeinError("invalid_arguments", { problem, advice: "Leave --user and --agent out" });
  }
  await withCalls(terminal, options, async (open) => {
    await waitForIndex(terminal, open);
    const payload = await open.calls.call("users.list", present({ limit, cursor }));
    if (options.json === true) {
      printJson(terminal, payload);
      return;
    }
    const { users, nextCursor, indexing } = payload;
    if (users.length === 0) terminal.out("no users\n");
    else printTable(terminal, columns(terminal.now()), users);
    if (nextCursor !== undefined) printNote(terminal, `more: --cursor ${nextCursor}`);
    if (indexing !== undefined)
      printNote(terminal, `the index is behind for ${pluralize(indexing.behind, "session")}`);
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

async function removeUserCommand(
  terminal: Terminal,
  userId: string,
  options: GlobalOptions & { readonly yes?: boolean },
): Promise<void> {
  userSegment(userId);
  const { user, agent } = options;
  if ((user !== undefined && user !== userId) || agent !== undefined) {
    throw new SkeinError("invalid_arguments", {
      problem: `This command deletes everything of user ${userId}, so --user and --agent do not apply`,
      advice: "Leave --user and --agent out",
    });
  }
  await withCalls(terminal, { ...options, user: userId }, async ({ calls, place }) => {
    await confirm(terminal, `Delete everything of user ${userId} for good?`, options);
    const done = await calls.call("users.remove", { userId });
    if (done.found === false) {
      const advice = `${place} has no sessions and no tokens of this user; ${commandLine(terminal, options, ["users", "ls"])} lists those it has`;
      throw new SkeinError("not_found", { what: "User", name: userId, advice });
    }
    answer(terminal, options, done, [
      `user ${userId} is gone for good, with ${pluralize(done.sessions, "session")}`,
      ...erasePendingLines(done),
    ]);
  });
}
