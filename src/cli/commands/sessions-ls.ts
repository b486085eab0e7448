import { transcriptPath, workIn } from "../../compose.ts";
import { SkeinError } from "../../core/errors.ts";
import type { SessionKind } from "../../core/keys.ts";
import { present } from "../../core/present.ts";
import { displayKey } from "../../core/references.ts";
import type { SessionListPayload, TrashRow } from "../../protocol/session-list.ts";
import { modelOf } from "../../sessions/list-row.ts";
import { listSessions, listTrash } from "../../sessions/list-sessions.ts";
import type { ListedSession, SessionQuery } from "../../store/contract.ts";
import { bringUpIndex } from "../folder/bring-up-index.ts";
import type { Folder } from "../folder/with-folder.ts";
import { withFolder } from "../folder/with-folder.ts";
import { counted, shownAge, shownBytes, shownCost, shownCount } from "../output/amounts.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Column } from "../output/table.ts";
import { printTable } from "../output/table.ts";
import type { Terminal } from "../output/terminal.ts";
import { oneLine, paint, printJson } from "../output/terminal.ts";

export interface ListOptions extends GlobalOptions {
  readonly kinds?: string;
  readonly label?: string;
  readonly search?: string;
  readonly active?: number;
  readonly archived?: boolean;
  readonly trash?: boolean;
  readonly limit?: number;
  readonly cursor?: string;
}

export async function listCommand(terminal: Terminal, options: ListOptions): Promise<void> {
  const query = queryOf(options, terminal.now());
  await withFolder(terminal, options, (folder) =>
    options.trash === true
      ? printTrash(terminal, folder, options)
      : printSessions(terminal, folder, query, options),
  );
}

const kinds: readonly SessionKind[] = ["main", "group", "cron", "hook", "node", "other"];
const minute = 60_000;

function queryOf(options: ListOptions, now: number): SessionQuery {
  const { kinds: wanted, label, search, active, archived, limit, cursor } = options;
  const filters = { kinds: wanted, label, search, active, archived, limit, cursor };
  const [filter] = Object.entries(filters).find(([, value]) => value !== undefined) ?? [];
  if (options.trash === true && filter !== undefined) {
    const problem = `--${filter} does not filter the trash`;
    throw new SkeinError("invalid_arguments", { problem, advice: "Use --trash alone" });
  }
  return present({
    kinds: wanted === undefined ? null : kindsOf(wanted),
    label,
    text: search,
    activeSince: active === undefined ? null : now - active * minute,
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
      const problem = `"${each}" is no kind of session`;
      throw new SkeinError("invalid_arguments", { problem, advice: `The kinds are ${kinds.join(", ")}` });
    });
}

async function printSessions(
  terminal: Terminal,
  folder: Folder,
  query: SessionQuery,
  options: ListOptions,
): Promise<void> {
  const { store, scope, asker } = folder;
  const place = {
    path: store.root,
    transcriptPath: (session: ListedSession) => transcriptPath(store, session),
    ...present({ runs: workIn(store) }),
  };
  await bringUpIndex(terminal, folder);
  const { payload, page } = await listSessions(store.sessions, scope, query, place);
  if (options.json === true) {
    printJson(terminal, payload);
    return;
  }
  if (page.sessions.length === 0) terminal.out(`no sessions${isFiltered(query) ? " like that" : ""}\n`);
  else
    printTable(
      terminal,
      columnsFor((key) => displayKey(key, asker), statusesIn(payload), terminal.now()),
      page.sessions,
    );
  if (page.nextCursor !== null) note(terminal, `more: --cursor ${page.nextCursor}`);
  if (page.behind > 0) note(terminal, `the index is behind for ${counted(page.behind, "session")}`);
}

function isFiltered({ limit: _limit, ...filters }: SessionQuery): boolean {
  return Object.keys(filters).length > 0;
}

/** What goes on, by session id; a session where nothing does is not in it. */
function statusesIn({ sessions }: SessionListPayload): ReadonlyMap<string, string> {
  const busy = sessions.flatMap(({ sessionId, status = "idle" }): [string, string][] =>
    status === "idle" ? [] : [[sessionId, status]],
  );
  return new Map(busy);
}

function columnsFor(
  shown: (key: string) => string,
  statuses: ReadonlyMap<string, string>,
  now: number,
): Column<ListedSession>[] {
  const status: Column<ListedSession> = {
    title: "STATUS",
    text: ({ sessionId }) => statuses.get(sessionId) ?? "",
  };
  return [
    { title: "KEY", text: ({ key }) => shown(key), least: 16 },
    { title: "KIND", text: ({ kind }) => kind, spare: 2 },
    ...(statuses.size === 0 ? [] : [status]),
    { title: "LABEL OR NAME", text: calledOf, least: 13 },
    { title: "MODEL", text: (session) => modelOf(session) ?? "", least: 8, spare: 5 },
    { title: "TOKENS", text: ({ digest }) => tokensOf(digest.totalTokens), align: "right", spare: 4 },
    { title: "COST", text: ({ digest }) => shownCost(digest.costUsd), align: "right", spare: 3 },
    { title: "SIZE", text: ({ digest }) => shownBytes(digest.bytes), align: "right", spare: 1 },
    { title: "AGE", text: ({ updatedAt }) => shownAge(now - updatedAt), align: "right" },
  ];
}

function calledOf({ meta, name }: ListedSession): string {
  return meta.label ?? meta.displayName ?? name ?? "";
}

function tokensOf(tokens: number): string {
  return tokens === 0 ? "" : shownCount(tokens);
}

async function printTrash(terminal: Terminal, folder: Folder, options: ListOptions): Promise<void> {
  const { store, scope, asker } = folder;
  const payload = await listTrash(store.sessions, scope, { path: store.root });
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
    { title: "SESSION ID", text: ({ sessionId }) => sessionId, least: 36 },
    { title: "KEY", text: ({ key }) => displayKey(key, asker), least: 16 },
    { title: "KIND", text: ({ kind }) => kind },
    { title: "LABEL", text: ({ label }) => label ?? "", least: 8 },
    { title: "SIZE", text: ({ bytes }) => shownBytes(bytes), align: "right" },
    { title: "REMOVED", text: ({ removedAt }) => shownAge(now - removedAt), align: "right" },
  ];
  printTable(terminal, columns, payload.sessions);
}

function note(terminal: Terminal, text: string): void {
  terminal.out(`${paint(terminal, "dim", oneLine(text, terminal.columns))}\n`);
}
