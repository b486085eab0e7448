import type { Command } from "commander";
import { SkeinError } from "../core/errors.ts";
import type { SessionKind } from "../core/keys.ts";
import { present } from "../core/present.ts";
import { displayKey } from "../core/references.ts";
import type { Params } from "../protocol/methods/method-table.ts";
import type { SearchPayload, SessionRow, TrashRow } from "../protocol/session-list.ts";
import type { CommandContext } from "./command.ts";
import { allUsersOption, examples, upTo, wholeNumber } from "./command.ts";
import { resolveRef } from "./connection/resolve-session.ts";
import type { OpenCalls } from "./connection/with-calls.ts";
import { waitForIndex, withCalls } from "./connection/with-calls.ts";
import {
  formatAge,
  formatBytes,
  formatCost,
  formatCount,
  formatTime,
  parseTime,
  pluralize,
} from "./output/format.ts";
import type { AllUsersOption, GlobalOptions } from "./output/global-options.ts";
import { userColumn, userFilter } from "./output/global-options.ts";
import type { Column } from "./output/table.ts";
import { printTable } from "./output/table.ts";
import type { Terminal } from "./output/terminal.ts";
import { oneLine, paint, printJson, printNote, wholeLine } from "./output/terminal.ts";

export function registerSessionsLs(command: Command, { terminal }: CommandContext): void {
  command
    .option("--kinds <kinds>", "only these, with commas: main, group, cron, hook, node, other")
    .option("--label <label>", "only the one with this label")
    .option("--search <text>", "only those with this text in key, id, label or name")
    .option("--active <minutes>", "only those used in the last so many minutes", wholeNumber)
    .option("--archived", "archived sessions instead")
    .option("--trash", "the trash instead")
    .option("--limit <n>", "at most this many sessions, up to 1000 (default: 100)", upTo(1000))
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
    .action(() => listCommand(terminal, command.optsWithGlobals()));
}

export function registerSessionsSearch(command: Command, { terminal }: CommandContext): void {
  command
    .argument("<text>", "the words to search for")
    .option("--session <ref>", "only in this session")
    .option("--role <role>", "only entries of this role: user, assistant, toolResult")
    .option("--since <time>", "not before this time: a date, or a span back from now such as 90m, 24h, 7d")
    .option("--until <time>", "not after this time")
    .option("--limit <n>", "at most this many hits, up to 50 (default: 10)", upTo(50))
    .addHelpText(
      "after",
      examples(
        "skein sessions search gardens",
        'skein sessions search "counter seats" --session trip --role assistant',
        "skein sessions search Kyoto --since 7d --json",
      ),
    )
    .action((text: string) => searchCommand(terminal, text, command.optsWithGlobals()));
}

interface ListOptions extends GlobalOptions, AllUsersOption {
  readonly kinds?: string;
  readonly label?: string;
  readonly search?: string;
  readonly active?: number;
  readonly archived?: boolean;
  readonly trash?: boolean;
  readonly limit?: number;
  readonly cursor?: string;
}

async function listCommand(terminal: Terminal, options: ListOptions): Promise<void> {
  const query = queryOf(options);
  await withCalls(terminal, options, (open) =>
    options.trash === true
      ? printTrash(terminal, open, options)
      : printSessions(terminal, open, query, options),
  );
}

type ListQuery = Omit<Params<"sessions.list">, "userId" | "agentId">;

const kinds: readonly SessionKind[] = ["main", "group", "cron", "hook", "node", "other"];

function queryOf(options: ListOptions): ListQuery {
  const { kinds: wanted, label, search, active, archived, limit, cursor, allUsers } = options;
  const filters = { kinds: wanted, label, search, active, archived, limit, cursor, "all-users": allUsers };
  const [filter] = Object.entries(filters).find(([, value]) => value !== undefined) ?? [];
  if (options.trash === true && filter !== undefined) {
    const problem = `--${filter} does not filter the trash`;
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
      throw new SkeinError("invalid_arguments", { problem, advice: `The kinds are ${kinds.join(", ")}` });
    });
}

async function printSessions(
  terminal: Terminal,
  open: OpenCalls,
  query: ListQuery,
  options: ListOptions,
): Promise<void> {
  await waitForIndex(terminal, open);
  const { agentId } = open.reader;
  const payload = await open.calls.call("sessions.list", {
    ...query,
    ...present({ agentId }),
    ...userFilter(options),
  });
  if (options.json === true) {
    printJson(terminal, payload);
    return;
  }
  const { sessions, nextCursor, indexing } = payload;
  const isBusy = sessions.some((row) => statusOf(row) !== "");
  const columns = columnsFor((key) => displayKey(key, open.asker), isBusy, terminal.now());
  if (sessions.length === 0) terminal.out(`no sessions${isFiltered(query) ? " like that" : ""}\n`);
  else printTable(terminal, options.allUsers === true ? [userColumn, ...columns] : columns, sessions);
  if (nextCursor !== undefined) printNote(terminal, `more: --cursor ${nextCursor}`);
  if (indexing !== undefined)
    printNote(terminal, `the index is behind for ${pluralize(indexing.behind, "session")}`);
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

async function printTrash(terminal: Terminal, open: OpenCalls, options: ListOptions): Promise<void> {
  const { calls, reader, asker } = open;
  const payload = await calls.call("sessions.trash", reader);
  if (options.json === true) {
    printJson(terminal, payload);
    return;
  }
  if (payload.count === 0) {
    terminal.out("the trash is empty\n");
    return;
  }
  const now = terminal.now();
  const columns: Column<TrashRow>[] = [
    { title: "SESSION ID", text: ({ sessionId }) => sessionId, whole: true },
    { title: "KEY", text: ({ key }) => displayKey(key, asker), whole: true },
    { title: "KIND", text: ({ kind }) => kind, spare: 2 },
    { title: "LABEL", text: ({ label }) => label ?? "", least: 8 },
    { title: "SIZE", text: ({ bytes }) => formatBytes(bytes), align: "right", spare: 1 },
    { title: "REMOVED", text: ({ removedAt }) => formatAge(now - removedAt), align: "right" },
  ];
  printTable(terminal, columns, payload.sessions);
}

interface SearchOptions extends GlobalOptions {
  readonly session?: string;
  readonly role?: string;
  readonly since?: string;
  readonly until?: string;
  readonly limit?: number;
}

async function searchCommand(terminal: Terminal, text: string, options: SearchOptions): Promise<void> {
  const { session, role, since, until, limit } = options;
  if (text.trim() === "") {
    throw new SkeinError("invalid_arguments", {
      problem: "The search text is empty",
      advice: "Give at least one word",
    });
  }
  const now = terminal.now();
  const times = {
    since: since === undefined ? null : parseTime(since, now),
    until: until === undefined ? null : parseTime(until, now),
  };
  await withCalls(terminal, options, async (open) => {
    const key = session === undefined ? null : (await resolveRef(open, session)).key;
    await waitForIndex(terminal, open);
    const asked = { query: text, ...present({ key, role, ...times, limit }), ...open.reader };
    const found = await open.calls.call("sessions.search", asked);
    if (options.json === true) printJson(terminal, found);
    else printHits(terminal, open, found);
  });
}

function printHits(terminal: Terminal, { asker }: OpenCalls, { hits, indexing }: SearchPayload): void {
  if (hits.length === 0) terminal.out("nothing found\n");
  for (const [index, { key, entryId, role, time, snippet }] of hits.entries()) {
    const parts = [displayKey(key, asker), role, formatTime(time), `…${entryId.slice(-8)}`];
    const where = parts.join(" · ");
    terminal.out(`${index === 0 ? "" : "\n"}${paint(terminal, "bold", wholeLine(where))}\n`);
    terminal.out(`  ${oneLine(snippet, terminal.columns - 2)}\n`);
  }
  if (indexing !== undefined) {
    const text = `the index is behind for ${pluralize(indexing.behind, "session")}; there may be more`;
    terminal.out(`${paint(terminal, "dim", oneLine(text, terminal.columns))}\n`);
  }
}
