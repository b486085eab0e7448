import type { Command } from "commander";
import { SkeinError } from "../core/errors.ts";
import type { SessionKind } from "../core/keys.ts";
import { present } from "../core/present.ts";
import { displayKey } from "../core/references.ts";
import type { Params } from "../protocol/method-table.ts";
import type { SearchPayload, SessionRow, TrashRow } from "../protocol/session-list.ts";
import type { CommandContext } from "./command.ts";
import { action, allUsersOption, examples, upTo, wholeNumber } from "./command.ts";
import { otherUsersNote, shouldCountOthers } from "./connection/other-users.ts";
import { resolveRef } from "./connection/resolve-session.ts";
import type { OpenCalls } from "./connection/with-calls.ts";
import { waitForIndex, withCalls } from "./connection/with-calls.ts";
import { printPayload } from "./output/answer.ts";
import {
  formatAge,
  formatBytes,
  formatCost,
  formatCount,
  formatTime,
  parseTime,
  pluralize,
} from "./output/format.ts";
import type { AllUsersOption, Invocation } from "./output/invocation.ts";
import { userFilter } from "./output/invocation.ts";
import type { Column } from "./output/table.ts";
import { pageNotes, printList, userColumn } from "./output/table.ts";
import type { Terminal } from "./output/terminal.ts";
import { oneLine, paint, wholeLine } from "./output/terminal.ts";

export function registerSessionsLs(command: Command, context: CommandContext): void {
  command
    .option("--kinds <kinds>", "only these kinds, separated by commas: main, group, cron, hook, node, other")
    .option("--label <label>", "only the session with this label")
    .option("--search <text>", "only sessions with this text in their key, ID, label or name")
    .option("--active <minutes>", "only sessions that were active in the last <minutes> minutes", wholeNumber)
    .option("--archived", "list archived sessions instead")
    .option("--trash", "list the trash instead")
    .option("--limit <n>", "maximum number of sessions, up to 1000 (default: 100)", upTo(1000))
    .option("--cursor <cursor>", "continue after the page that returned this cursor")
    .addOption(allUsersOption())
    .addHelpText(
      "after",
      examples(
        "skein sessions ls",
        "skein sessions ls --kinds main,group --active 60",
        "skein sessions ls --trash",
        "skein sessions ls --agent research --json",
      ),
    )
    .action(action(context, listSessions));
}

export function registerSessionsSearch(command: Command, context: CommandContext): void {
  command
    .argument("<text...>", 'words or a question; "quoted words" must occur exactly; -word must not occur')
    .option("--session <ref>", "only in this session")
    .option("--role <role>", "only entries with this role: user, assistant, toolResult")
    .option(
      "--since <time>",
      "only entries since this time: a date, or a duration before now such as 90m, 24h or 7d",
    )
    .option("--until <time>", "only entries up to this time")
    .option("--by-session", "only the best result of each session")
    .option("--limit <n>", "maximum number of results, up to 50 (default: 10)", upTo(50))
    .addHelpText(
      "after",
      examples(
        "skein sessions search gardens",
        "skein sessions search boiler error",
        'skein sessions search "When did Maya sign up for the pottery class?"',
        'skein sessions search "counter seats" --session trip --role assistant',
        "skein sessions search Kyoto --since 7d --json",
      ),
    )
    .action(action(context, searchSessions));
}

interface ListOptions extends AllUsersOption {
  readonly kinds?: string;
  readonly label?: string;
  readonly search?: string;
  readonly active?: number;
  readonly archived?: boolean;
  readonly trash?: boolean;
  readonly limit?: number;
  readonly cursor?: string;
}

async function listSessions(cli: Invocation<ListOptions>): Promise<void> {
  const query = queryOf(cli.options);
  await withCalls(cli, (open) =>
    cli.options.trash === true ? printTrash(open) : printSessions(cli, open, query),
  );
}

type ListQuery = Omit<Params<"sessions.list">, "userId" | "agentId">;

const kinds: readonly SessionKind[] = ["main", "group", "cron", "hook", "node", "other"];

function queryOf(options: ListOptions): ListQuery {
  const { kinds: wanted, label, search, active, archived, limit, cursor, allUsers } = options;
  const filters = { kinds: wanted, label, search, active, archived, limit, cursor, "all-users": allUsers };
  const [filter] = Object.entries(filters).find(([, value]) => value !== undefined) ?? [];
  if (options.trash === true && filter !== undefined) {
    const problem = `--${filter} cannot be combined with --trash`;
    throw new SkeinError("invalid_arguments", { problem, advice: "Use --trash alone" });
  }
  return present({
    kinds: wanted === undefined ? null : kindsOf(wanted),
    label,
    search,
    activeMinutes: active,
    archived,
    limit,
    cursor,
  });
}

function kindsOf(text: string): SessionKind[] {
  const named = text.split(",").map((each) => each.trim().toLowerCase());
  return named
    .filter((each) => each !== "")
    .map((each) => {
      const kind = kinds.find((known) => known === each);
      if (kind !== undefined) return kind;
      const problem = `"${each}" is not a session kind`;
      throw new SkeinError("invalid_arguments", { problem, advice: `Use one of ${kinds.join(", ")}` });
    });
}

async function printSessions(cli: Invocation<ListOptions>, open: OpenCalls, query: ListQuery): Promise<void> {
  await waitForIndex(open);
  const { agentId } = open.reader;
  const filter = { ...query, includeGlobal: true, ...present({ agentId }) };
  const own = shouldCountOthers(cli) ? { total: true } : {};
  const payload = await open.calls.call("sessions.list", { ...filter, ...userFilter(cli), ...own });
  const others = await otherUsersNote(cli, async () => {
    const all = await open.calls.call("sessions.list", { ...filter, limit: 1, allUsers: true, total: true });
    return { others: (all.total ?? 0) - (payload.total ?? 0), isExact: true };
  });
  const { sessions, nextCursor, indexing } = payload;
  const isBusy = sessions.some((row) => statusOf(row) !== "");
  const columns = columnsFor((key) => displayKey(key, open.asker), isBusy, cli.terminal.now());
  printList(cli, payload, {
    columns: cli.options.allUsers === true ? [userColumn, ...columns] : columns,
    rows: sessions,
    empty: isFiltered(query) ? "no matching sessions" : "no sessions",
    notes: [...others, ...pageNotes(nextCursor, indexing)],
  });
}

function isFiltered({ limit: _limit, ...filters }: ListQuery): boolean {
  return Object.keys(filters).length > 0;
}

/** Empty if the session is idle. */
function statusOf({ status = "idle" }: SessionRow): string {
  return status === "idle" ? "" : status;
}

function columnsFor(shown: (key: string) => string, isBusy: boolean, now: number): Column<SessionRow>[] {
  const status: Column<SessionRow> = { title: "STATUS", text: statusOf };
  return [
    { title: "KEY", text: ({ key }) => shown(key), whole: true },
    { title: "KIND", text: ({ kind }) => kind, spare: 2 },
    ...(isBusy ? [status] : []),
    { title: "LABEL OR NAME", text: ({ label, displayName }) => label ?? displayName ?? "", least: 13 },
    { title: "MODEL", text: ({ model }) => model ?? "", least: 8, spare: 5 },
    { title: "TOKENS", text: ({ totalTokens }) => tokensOf(totalTokens ?? 0), align: "right", spare: 4 },
    {
      title: "COST",
      text: ({ estimatedCostUsd }) => formatCost(estimatedCostUsd ?? null),
      align: "right",
      spare: 3,
    },
    { title: "SIZE", text: ({ bytes }) => formatBytes(bytes ?? 0), align: "right", spare: 1 },
    { title: "AGE", text: ({ updatedAt }) => formatAge(now - updatedAt), align: "right" },
  ];
}

function tokensOf(tokens: number): string {
  return tokens === 0 ? "" : formatCount(tokens);
}

async function printTrash(open: OpenCalls): Promise<void> {
  const { terminal, calls, reader, asker } = open;
  const payload = await calls.call("sessions.trash", reader);
  const now = terminal.now();
  const columns: Column<TrashRow>[] = [
    { title: "SESSION ID", text: ({ sessionId }) => sessionId, whole: true },
    { title: "KEY", text: ({ key }) => displayKey(key, asker), whole: true },
    { title: "KIND", text: ({ kind }) => kind, spare: 2 },
    { title: "LABEL", text: ({ label }) => label ?? "", least: 8 },
    { title: "SIZE", text: ({ bytes }) => formatBytes(bytes), align: "right", spare: 1 },
    { title: "REMOVED", text: ({ removedAt }) => formatAge(now - removedAt), align: "right" },
  ];
  printList(open, payload, { columns, rows: payload.sessions, empty: "the trash is empty" });
}

interface SearchOptions {
  readonly session?: string;
  readonly role?: string;
  readonly since?: string;
  readonly until?: string;
  readonly bySession?: true;
  readonly limit?: number;
}

async function searchSessions(cli: Invocation<SearchOptions>, words: readonly string[]): Promise<void> {
  const text = words.join(" ");
  const { session, role, since, until, bySession, limit } = cli.options;
  if (text.trim() === "") {
    const problem = "The search text is empty";
    throw new SkeinError("invalid_arguments", { problem, advice: "Enter at least one word" });
  }
  const now = cli.terminal.now();
  const times = {
    since: since === undefined ? null : parseTime(since, now),
    until: until === undefined ? null : parseTime(until, now),
  };
  await withCalls(cli, async (open) => {
    const key = session === undefined ? null : (await resolveRef(open, session)).key;
    await waitForIndex(open);
    const params = { query: text, ...present({ key, role, ...times, bySession, limit }), ...open.reader };
    const found = await open.calls.call("sessions.search", params);
    printPayload(cli, found, () => printHits(open, found));
  });
}

function printHits({ terminal, asker }: OpenCalls, { hits, indexing }: SearchPayload): void {
  if (hits.length === 0) terminal.out("nothing found\n");
  for (const [index, { key, entryId, role, time, snippet, ranges }] of hits.entries()) {
    const parts = [displayKey(key, asker), role, formatTime(time), `…${entryId.slice(-8)}`];
    const where = parts.join(" · ");
    terminal.out(`${index === 0 ? "" : "\n"}${paint(terminal, "bold", wholeLine(where))}\n`);
    terminal.out(`  ${markWords(terminal, oneLine(snippet, terminal.columns - 2), snippet, ranges)}\n`);
  }
  if (indexing !== undefined) {
    const text = `the index is behind for ${pluralize(indexing.behind, "session")}; there may be more results`;
    terminal.out(`${paint(terminal, "dim", oneLine(text, terminal.columns))}\n`);
  }
}

/** Marks the matched words in a snippet that was reduced to one line. Stops where the line differs from the snippet. */
function markWords(
  terminal: Terminal,
  line: string,
  snippet: string,
  ranges: readonly (readonly number[])[],
): string {
  let marked = "";
  let from = 0;
  for (const [start = 0, end = 0] of ranges) {
    if (line.slice(from, end) !== snippet.slice(from, end)) break;
    marked += line.slice(from, start) + paint(terminal, "bold", line.slice(start, end));
    from = end;
  }
  return marked + line.slice(from);
}
